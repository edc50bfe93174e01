// The bytes of any number of requests either are no HTTP, or each gets a well-formed answer that
// shows no bug.

#include <cstddef>
#include <cstdint>

#include "serve.h"
#include "server/http_request.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const tilecast::server::Api& api = tilecast::fuzzed_api();
  boost::asio::const_buffer rest(data, size);
  for (int requests = 0; requests < 8 && rest.size() > 0; ++requests) {
    tilecast::server::RequestParser parser;
    tilecast::server::set_limits(parser);
    parser.eager(true);
    boost::beast::error_code code;
    // As a connection reads it: once more where the first call ends with the header.
    while (!parser.is_done() && !code && rest.size() > 0) rest += parser.put(rest, code);
    if (code || !parser.is_header_done() || tilecast::server::has_unknown_coding(parser.get()))
      return 0;
    tilecast::server::HttpRequest request = tilecast::server::request_of(parser.get());
    if (const auto refused = api.refusal(request)) {
      tilecast::check_answer(*refused);
      return 0;
    }
    if (!parser.is_done()) return 0;
    request.body = parser.get().body();
    tilecast::server::Api::is_quick(request);
    tilecast::check_answer(api.answer(request));
  }
  return 0;
}
