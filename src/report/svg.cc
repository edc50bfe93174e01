#include "report/svg.h"

#include <fmt/format.h>

#include <cmath>

namespace tilecast {
namespace {

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

double round_step(double top, double lines) {
  const double rough = top / lines, power = std::pow(10, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= rough) return factor * power;
  }
  return 10 * power;
}

SvgPicture::SvgPicture(double width, double height)
    : out_(fmt::format(
          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 "
          "{0} {1}\" font-family=\"sans-serif\" font-size=\"12\">\n"
          "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
          width, height)) {}

void SvgPicture::text(double x, double y, const std::string& content, const std::string& style) {
  out_ +=
      fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, escaped(content));
}

void SvgPicture::add_text(const std::string& content) { out_ += escaped(content); }

void SvgPicture::line(double x1, double y1, double x2, double y2, const std::string& style) {
  out_ += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" {}/>\n", x1,
                      y1, x2, y2, style);
}

}  // namespace tilecast
