#include "server/http.h"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/signal_set.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "base/text.h"
#include "server/http_request.h"
#include "server/table.h"
#include "tilecast/error.h"

namespace tilecast::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using beast::error_code;

/// Of all bodies that are on their way; the largest ones wait for room (503).
constexpr size_t kMostBodyBytes = 256 << 20;
/// A connection that ends reads on for a while: what a client has sent and nobody reads would
/// reset the connection before the client has seen its answer.
constexpr size_t kMostDroppedBytes = 16 << 20;
constexpr int kDropSeconds = 2;
/// Between looks at a body whose next part is not there yet.
constexpr auto kBetweenLooks = std::chrono::milliseconds(100);
/// Descriptors that are left for files and the like.
constexpr rlim_t kSpareDescriptors = 64;

/// As many connections as there may be open files, once the limit is as high as it may be.
size_t most_connections(size_t wanted) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return wanted;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return wanted;
  const rlim_t room = limit.rlim_cur > 2 * kSpareDescriptors ? limit.rlim_cur - kSpareDescriptors
                                                             : limit.rlim_cur / 2;
  return std::min<size_t>(wanted, room);
}

/// Runs what is posted to a context. What throws ends alone: it is no reason to end the service.
void run_context(asio::io_context& context) {
  while (true) {
    try {
      context.run();
      return;
    } catch (const std::exception& error) {
      fmt::print(stderr, "tilecast: a connection ended: {}\n", error.what());
    }
  }
}

}  // namespace

/// What the connections share.
struct HttpServer::Impl {
  class Session;

  const Api& api;
  HttpOptions options;
  asio::io_context io;     ///< connections
  asio::io_context long_;  ///< long answers
  asio::executor_work_guard<asio::io_context::executor_type> long_work{long_.get_executor()};
  /// Of what is not a connection: the acceptor, signals, the pause.
  asio::strand<asio::io_context::executor_type> strand{asio::make_strand(io)};
  tcp::acceptor acceptor{strand};
  asio::signal_set signals{strand, SIGINT, SIGTERM};
  asio::steady_timer pause{strand};
  std::atomic<bool> stopping{false};
  std::atomic<size_t> waiting{0}, body_bytes{0};
  std::mutex mutex;
  std::set<Session*> sessions;  ///< that are open

  Impl(const Api& served, const HttpOptions& asked) : api(served), options(asked) {
    options.most_connections = most_connections(asked.most_connections);
  }

  void accept();
  void stop();
};

class HttpServer::Impl::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket&& socket, Impl& server) : stream_(std::move(socket)), server_(server) {
    const std::lock_guard lock(server_.mutex);
    server_.sessions.insert(this);
    ++server_.api.metrics().connections;
  }
  ~Session() {
    end_long();
    take_body_room(0);
    const std::lock_guard lock(server_.mutex);
    server_.sessions.erase(this);
    --server_.api.metrics().connections;
  }
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  void start() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] { self->read(); });
  }

  /// Ends a connection that waits for its next request.
  void end_if_idle() {
    asio::dispatch(stream_.get_executor(), [self = shared_from_this()] {
      if (self->idle_) self->stream_.cancel();
    });
  }

 private:
  void read() {
    if (server_.stopping) return close();
    take_body_room(0);
    parser_.emplace();
    set_limits(*parser_);
    stream_.expires_after(std::chrono::seconds(server_.options.idle_seconds));
    idle_ = true;
    http::async_read_header(
        stream_, buffer_, *parser_,
        [self = shared_from_this()](error_code code, size_t) { self->on_header(code); });
  }

  /// What is refused by its header alone is refused before its body is read.
  void on_header(error_code code) {
    idle_ = false;
    if (code) return on_broken(code);
    request_ = request_of(parser_->get());
    keep_alive_ = parser_->get().keep_alive();
    if (has_unknown_coding(parser_->get()))
      return end_with(problem(400, "expected a body in one piece or in chunks (chunked)"));
    if (std::optional<HttpResponse> refused = server_.api.refusal(request_))
      return end_with(*std::move(refused));
    const size_t most = most_body_bytes();
    const auto length = parser_->content_length();
    if (length && *length > most) return end_with(too_large(most));
    parser_->body_limit(most);
    const size_t body = length ? static_cast<size_t>(*length) : parser_->chunked() ? most : 0;
    if (!take_body_room(body)) return end_with(too_much("too many bodies are on their way"));
    if (beast::iequals(parser_->get()[http::field::expect], "100-continue")) return go_on();
    read_body();
  }

  void go_on() {
    static constexpr std::string_view kGoOn = "HTTP/1.1 100 Continue\r\n\r\n";
    asio::async_write(stream_, asio::buffer(kGoOn.data(), kGoOn.size()),
                      [self = shared_from_this()](error_code code, size_t) {
                        if (code) return self->close();
                        self->read_body();
                      });
  }

  void read_body() {
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code code, size_t) { self->on_body(code); });
  }

  void on_body(error_code code) {
    if (code) return on_broken(code);
    request_.body = std::move(parser_->get().body());
    if (Api::is_quick(request_)) return write(server_.api.answer(request_));
    if (server_.waiting.fetch_add(1) >= server_.options.most_waiting) {
      --server_.waiting;
      return write(too_much("too many long answers are in progress"));
    }
    is_long_ = true;
    auto response = std::make_shared<HttpResponse>();
    work_long(
        [self = shared_from_this(), response] {
          *response = self->server_.stopping ? problem(503, "the service ends")
                                             : self->server_.api.answer(self->request_);
        },
        [self = shared_from_this(), response] { self->write(std::move(*response)); });
  }

  /// Does `work` on a thread for long answers, then `done` on the connection's. The connection
  /// counts as work meanwhile: a service that stops waits for it.
  template <typename Work, typename Done>
  void work_long(Work work, Done done) {
    stream_.expires_never();
    asio::post(server_.long_,
               [self = shared_from_this(), work = std::move(work), done = std::move(done),
                guard = asio::make_work_guard(stream_.get_executor())]() mutable {
                 work();
                 asio::post(self->stream_.get_executor(), std::move(done));
               });
  }

  /// Another one may be long now.
  void end_long() {
    if (std::exchange(is_long_, false)) --server_.waiting;
  }

  void on_broken(error_code code) {
    if (code == http::error::body_limit) return end_with(too_large(most_body_bytes()));
    if (code == http::error::end_of_stream || code == beast::error::timeout ||
        code == asio::error::operation_aborted || code == asio::error::connection_reset)
      return close();
    end_with(problem(400, "this is no HTTP request: " + code.message()));
  }

  size_t most_body_bytes() const {
    return is_table(request_.target) ? kMostTableBytes : server_.options.most_body_bytes;
  }

  static HttpResponse too_large(size_t most) {
    return problem(413, fmt::format("a body has at most {}; one of forecast_many {}",
                                    format_bytes(static_cast<int64_t>(most)),
                                    format_bytes(static_cast<int64_t>(kMostTableBytes))));
  }

  /// Takes so much of the room for bodies in place of what it had. False: there is not so much.
  bool take_body_room(size_t bytes) {
    server_.body_bytes -= std::exchange(body_room_, 0);
    if (bytes == 0) return true;
    if (server_.body_bytes.fetch_add(bytes) + bytes > kMostBodyBytes) {
      server_.body_bytes -= bytes;
      return false;
    }
    body_room_ = bytes;
    return true;
  }

  HttpResponse too_much(const std::string& detail) const {
    ++server_.api.metrics().refused;
    HttpResponse response = problem(503, detail);
    response.headers.emplace_back("Retry-After", "1");
    return response;
  }

  /// The answer to a request whose body is not read: the connection ends with it.
  void end_with(HttpResponse&& answer) {
    keep_alive_ = false;
    ++server_.api.metrics().requests;
    ++server_.api.metrics().errors;
    write(std::move(answer));
  }

  template <typename Message>
  void set_header(Message& message, const HttpResponse& answer) const {
    message.result(static_cast<unsigned>(answer.status));
    message.set(http::field::server, "tilecast");
    if (!answer.content_type.empty()) message.set(http::field::content_type, answer.content_type);
    message.set("X-Content-Type-Options", "nosniff");
    message.set("Content-Security-Policy", "default-src 'none'");
    for (const auto& [name, value] : answer.headers) message.set(name, value);
  }

  void write(HttpResponse&& answer) {
    if (answer.parts) return write_head(std::move(answer));
    end_long();
    response_ = {};
    set_header(response_, answer);
    response_.keep_alive(keep_alive_ && !server_.stopping);
    constexpr int kNoContent = 204;  // RFC 9110: it has no length either
    const size_t length = answer.body.size();
    if (request_.method != "HEAD") response_.body() = std::move(answer.body);
    if (answer.status != kNoContent) response_.content_length(length);
    expire();
    http::async_write(stream_, response_, [self = shared_from_this()](error_code code, size_t) {
      if (code || self->response_.need_eof()) return self->close();
      self->read();
    });
  }

  void expire() { stream_.expires_after(std::chrono::seconds(server_.options.idle_seconds)); }

  /// Of an answer whose body is made part by part: chunks, or until the connection ends.
  void write_head(HttpResponse&& answer) {
    constexpr unsigned kWithChunks = 11;  // HTTP/1.1
    parts_ = std::move(answer.parts);
    is_chunked_ = parser_->get().version() >= kWithChunks;
    keep_alive_ = keep_alive_ && is_chunked_;
    head_ = {};
    set_header(head_, answer);
    head_.chunked(is_chunked_);
    head_.keep_alive(keep_alive_);
    head_writer_.emplace(head_);
    expire();
    http::async_write_header(stream_, *head_writer_,
                             [self = shared_from_this()](error_code code, size_t) {
                               if (code) return self->end_parts();
                               self->next_part();
                             });
  }

  void next_part() {
    if (!parts_->is_long) {
      take_part();
      return on_part();
    }
    work_long([self = shared_from_this()] { self->take_part(); },
              [self = shared_from_this()] { self->on_part(); });
  }

  /// Without the last chunk, the client sees that the answer is not whole.
  void take_part() {
    try {
      part_ = parts_->next();
      is_broken_ = false;
    } catch (const std::exception& error) {
      fmt::print(stderr, "tilecast: an answer is not whole: {}\n", printable(error.what()));
      is_broken_ = true;
    }
  }

  void on_part() {
    if (is_broken_) return end_parts();
    if (part_ && part_->empty()) {
      if (server_.stopping) return end_parts();
      looks_.expires_after(kBetweenLooks);
      return looks_.async_wait([self = shared_from_this()](error_code) { self->next_part(); });
    }
    expire();
    const auto written = [self = shared_from_this()](error_code code, size_t) {
      if (code) return self->end_parts();
      if (self->part_) return self->next_part();
      self->is_whole_ = true;
      self->end_parts();
    };
    if (!part_ && !is_chunked_) return end_parts();
    if (!part_) return asio::async_write(stream_, http::make_chunk_last(), written);
    if (!is_chunked_) return asio::async_write(stream_, asio::buffer(*part_), written);
    asio::async_write(stream_, http::make_chunk(asio::buffer(*part_)), written);
  }

  void end_parts() {
    end_long();
    parts_.reset();
    part_.reset();
    if (std::exchange(is_whole_, false) && keep_alive_) return read();
    close();
  }

  void close() {
    error_code code;
    stream_.socket().shutdown(tcp::socket::shutdown_send, code);
    if (code) return;
    stream_.expires_after(std::chrono::seconds(kDropSeconds));
    drop();
  }

  void drop() {
    buffer_.clear();
    stream_.async_read_some(buffer_.prepare(kMostHeaderBytes),
                            [self = shared_from_this()](error_code code, size_t bytes) {
                              self->dropped_ += bytes;
                              if (!code && self->dropped_ < kMostDroppedBytes) self->drop();
                            });
  }

  beast::tcp_stream stream_;
  Impl& server_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  http::response<http::empty_body> head_;  ///< of an answer in parts
  std::optional<http::response_serializer<http::empty_body>> head_writer_;
  std::shared_ptr<BodyParts> parts_;
  std::optional<std::string> part_;
  asio::steady_timer looks_{stream_.get_executor()};
  HttpRequest request_;
  size_t body_room_ = 0, dropped_ = 0;
  bool keep_alive_ = true;
  bool idle_ = false;
  bool is_long_ = false;  ///< counted among the long answers that wait
  bool is_chunked_ = false, is_broken_ = false, is_whole_ = false;
};

void HttpServer::Impl::accept() {
  acceptor.async_accept(asio::make_strand(io), [this](error_code code, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    bool full = false;
    {
      const std::lock_guard lock(mutex);
      full = sessions.size() >= options.most_connections;
    }
    if (!code && !full) {
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      std::make_shared<Session>(std::move(socket), *this)->start();
    }
    if (!code) return accept();
    // Without descriptors, the next one would fail at once.
    constexpr auto kPause = std::chrono::milliseconds(10);
    pause.expires_after(kPause);
    pause.async_wait([this](error_code) {
      if (acceptor.is_open()) accept();
    });
  });
}

void HttpServer::Impl::stop() {
  if (stopping.exchange(true)) return;
  api.end();
  asio::post(strand, [this] {
    error_code code;
    acceptor.close(code);
    signals.cancel(code);
    signals.clear(code);  // another signal ends the process
    pause.cancel();
    std::vector<std::shared_ptr<Session>> open;
    {
      const std::lock_guard lock(mutex);
      for (Session* session : sessions) {
        if (auto shared = session->weak_from_this().lock()) open.push_back(std::move(shared));
      }
    }
    for (const auto& session : open) session->end_if_idle();
  });
}

bool is_loopback(const std::string& address) {
  error_code code;
  const asio::ip::address parsed = asio::ip::make_address(address, code);
  if (code)
    throw Error(ErrorKind::kInput, fmt::format("`host`: expected an address like 127.0.0.1 or ::1, "
                                               "found '{}'",
                                               shown_name(address)));
  return parsed.is_loopback();
}

HttpServer::HttpServer(const Api& api, const HttpOptions& options)
    : impl_(std::make_unique<Impl>(api, options)) {
  const auto fail = [&](const error_code& code) {
    throw Error(ErrorKind::kIo, fmt::format("cannot listen on {}, port {}: {}",
                                            printable(options.host), options.port, code.message()));
  };
  is_loopback(options.host);  // throws if it is no address
  error_code code;
  const asio::ip::address address = asio::ip::make_address(options.host);
  const tcp::endpoint endpoint(address, options.port);
  tcp::acceptor& acceptor = impl_->acceptor;
  if (acceptor.open(endpoint.protocol(), code)) fail(code);
  acceptor.set_option(asio::socket_base::reuse_address(true), code);
  if (acceptor.bind(endpoint, code)) fail(code);
  if (acceptor.listen(asio::socket_base::max_listen_connections, code)) fail(code);
}

HttpServer::~HttpServer() = default;

uint16_t HttpServer::port() const { return impl_->acceptor.local_endpoint().port(); }

void HttpServer::run() {
  const auto cores = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const int threads = impl_->options.threads > 0 ? impl_->options.threads : cores;
  const int workers = impl_->options.workers > 0 ? impl_->options.workers : cores;
  impl_->signals.async_wait([this](error_code code, int) {
    if (!code) impl_->stop();
  });
  asio::post(impl_->strand, [this] { impl_->accept(); });
  std::vector<std::thread> long_threads, io_threads;
  for (int i = 0; i < workers; ++i) {
    long_threads.emplace_back([this] {
      // Quick answers go first. On Linux, a priority is a thread's.
      constexpr int kLow = 10;
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLow);
      run_context(impl_->long_);
    });
  }
  for (int i = 1; i < threads; ++i) io_threads.emplace_back([this] { run_context(impl_->io); });
  run_context(impl_->io);
  for (std::thread& thread : io_threads) thread.join();
  impl_->long_work.reset();
  for (std::thread& thread : long_threads) thread.join();
}

void HttpServer::stop() { impl_->stop(); }

}  // namespace tilecast::server
