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
#include <boost/asio/strand.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>
#include <chrono>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <vector>

#include "base/text.h"
#include "tilecast/error.h"

namespace tilecast::server {
namespace {

namespace asio = boost::asio;
namespace beast = boost::beast;
namespace http = boost::beast::http;
using asio::ip::tcp;
using beast::error_code;

constexpr uint32_t kMostHeaderBytes = 16 << 10;

std::string text_of(beast::string_view text) { return {text.data(), text.size()}; }

}  // namespace

/// What the connections share.
struct HttpServer::Impl {
  class Session;

  const Api& api;
  HttpOptions options;
  asio::io_context io;     ///< connections
  asio::io_context long_;  ///< long answers
  asio::executor_work_guard<asio::io_context::executor_type> long_work{long_.get_executor()};
  tcp::acceptor acceptor{io};
  asio::signal_set signals{io, SIGINT, SIGTERM};
  std::atomic<bool> stopping{false};
  std::atomic<size_t> waiting{0};
  std::mutex mutex;
  std::set<Session*> sessions;  ///< that are open

  Impl(const Api& served, const HttpOptions& asked) : api(served), options(asked) {}

  void accept();
  void stop();
};

class HttpServer::Impl::Session : public std::enable_shared_from_this<Session> {
 public:
  Session(tcp::socket&& socket, Impl& server) : stream_(std::move(socket)), server_(server) {
    const std::lock_guard lock(server_.mutex);
    server_.sessions.insert(this);
  }
  ~Session() {
    const std::lock_guard lock(server_.mutex);
    server_.sessions.erase(this);
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
    parser_.emplace();
    parser_->body_limit(server_.options.most_body_bytes);
    parser_->header_limit(kMostHeaderBytes);
    stream_.expires_after(std::chrono::seconds(server_.options.idle_seconds));
    idle_ = true;
    http::async_read(stream_, buffer_, *parser_,
                     [self = shared_from_this()](error_code code, size_t) { self->on_read(code); });
  }

  void on_read(error_code code) {
    idle_ = false;
    if (code == http::error::body_limit)
      return refuse(
          413, fmt::format("a body has at most {}",
                           format_bytes(static_cast<int64_t>(server_.options.most_body_bytes))));
    if (code == http::error::end_of_stream || code == beast::error::timeout ||
        code == asio::error::operation_aborted || code == asio::error::connection_reset)
      return close();
    if (code) return refuse(400, "this is no HTTP request: " + code.message());
    keep_alive_ = parser_->get().keep_alive();
    HttpRequest request = take_request();
    if (Api::is_quick(request)) return write(server_.api.answer(request));
    if (server_.waiting.fetch_add(1) >= server_.options.most_waiting) {
      --server_.waiting;
      ++server_.api.metrics().refused;
      HttpResponse response = problem(503, "too many long answers are in progress");
      response.headers.emplace_back("Retry-After", "1");
      return write(std::move(response));
    }
    stream_.expires_never();
    // The connection counts as work meanwhile: a service that stops waits for it.
    asio::post(server_.long_, [self = shared_from_this(), request = std::move(request),
                               work = asio::make_work_guard(stream_.get_executor())] {
      auto response = std::make_shared<HttpResponse>(self->server_.api.answer(request));
      --self->server_.waiting;
      asio::post(self->stream_.get_executor(),
                 [self, response] { self->write(std::move(*response)); });
    });
  }

  HttpRequest take_request() {
    auto message = parser_->release();
    const auto header = [&](http::field field) { return text_of(message[field]); };
    return {.method = text_of(message.method_string()),
            .target = text_of(message.target()),
            .host = header(http::field::host),
            .origin = header(http::field::origin),
            .authorization = header(http::field::authorization),
            .accept = header(http::field::accept),
            .body = std::move(message.body())};
  }

  void refuse(int status, const std::string& detail) {
    keep_alive_ = false;
    write(problem(status, detail));
  }

  void write(HttpResponse&& answer) {
    response_ = {};
    response_.result(static_cast<unsigned>(answer.status));
    response_.set(http::field::server, "tilecast");
    response_.set(http::field::content_type, answer.content_type);
    response_.set("X-Content-Type-Options", "nosniff");
    response_.set("Content-Security-Policy", "default-src 'none'");
    for (const auto& [name, value] : answer.headers) response_.set(name, value);
    response_.keep_alive(keep_alive_ && !server_.stopping);
    response_.body() = std::move(answer.body);
    response_.prepare_payload();
    stream_.expires_after(std::chrono::seconds(server_.options.idle_seconds));
    http::async_write(stream_, response_, [self = shared_from_this()](error_code code, size_t) {
      if (code || self->response_.need_eof()) return self->close();
      self->read();
    });
  }

  void close() {
    error_code code;
    stream_.socket().shutdown(tcp::socket::shutdown_send, code);
  }

  beast::tcp_stream stream_;
  Impl& server_;
  beast::flat_buffer buffer_;
  std::optional<http::request_parser<http::string_body>> parser_;
  http::response<http::string_body> response_;
  bool keep_alive_ = true;
  bool idle_ = false;
};

void HttpServer::Impl::accept() {
  acceptor.async_accept(asio::make_strand(io), [this](error_code code, tcp::socket socket) {
    if (!acceptor.is_open()) return;
    bool full = false;
    if (!code) {
      {
        const std::lock_guard lock(mutex);
        full = sessions.size() >= options.most_connections;
      }
      error_code ignored;
      socket.set_option(tcp::no_delay(true), ignored);
      if (!full) std::make_shared<Session>(std::move(socket), *this)->start();
    }
    // Without descriptors, the next one would fail at once.
    if (code) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    accept();
  });
}

void HttpServer::Impl::stop() {
  if (stopping.exchange(true)) return;
  asio::post(io, [this] {
    error_code code;
    acceptor.close(code);
    signals.cancel(code);
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

HttpServer::HttpServer(const Api& api, const HttpOptions& options)
    : impl_(std::make_unique<Impl>(api, options)) {
  const auto fail = [&](const error_code& code) {
    throw Error(ErrorKind::kIo, fmt::format("cannot listen on {}, port {}: {}",
                                            printable(options.host), options.port, code.message()));
  };
  error_code code;
  const asio::ip::address address = asio::ip::make_address(options.host, code);
  if (code)
    throw Error(ErrorKind::kInput, fmt::format("`host`: expected an address like 127.0.0.1 or ::1, "
                                               "found '{}'",
                                               shown_name(options.host)));
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
  impl_->accept();
  std::vector<std::thread> long_threads, io_threads;
  for (int i = 0; i < workers; ++i) {
    long_threads.emplace_back([this] {
      // Quick answers go first. On Linux, a priority is a thread's.
      constexpr int kLow = 10;
      ::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), kLow);
      impl_->long_.run();
    });
  }
  for (int i = 1; i < threads; ++i) io_threads.emplace_back([this] { impl_->io.run(); });
  impl_->io.run();
  for (std::thread& thread : io_threads) thread.join();
  impl_->long_work.reset();
  for (std::thread& thread : long_threads) thread.join();
}

void HttpServer::stop() { impl_->stop(); }

}  // namespace tilecast::server
