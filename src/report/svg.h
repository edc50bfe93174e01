#pragma once

#include <array>
#include <string>
#include <string_view>
#include <utility>

namespace tilecast {

/// The palette of Okabe and Ito, which color-blind readers can tell apart.
inline constexpr std::array<std::string_view, 7> kPalette = {
    "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#444444"};

/// 1, 2 or 5 times a power of ten: about `lines` steps up to `top`.
double round_step(double top, double lines);

/// A picture of lines and texts in SVG; units are pixels from the left top corner.
class SvgPicture {
 public:
  SvgPicture(double width, double height);

  /// `style`: further attributes, as in SVG.
  void text(double x, double y, const std::string& content, const std::string& style = "");
  void line(double x1, double y1, double x2, double y2, const std::string& style);
  /// An element, or a part of one, as it is.
  void add(const std::string& element) { out_ += element; }
  /// Text inside an element that is added in parts.
  void add_text(const std::string& content);
  std::string done() const { return out_ + "</svg>\n"; }

 private:
  std::string out_;
};

}  // namespace tilecast
