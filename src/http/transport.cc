#include "http/transport.h"

#include <sys/socket.h>

#include <cerrno>

namespace carve::http {
namespace {

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(os::Fd socket) : socket_(std::move(socket)) {}
  int fd() const override { return socket_.get(); }
  Moved read(std::span<char> into) override {
    return moved(recv(socket_.get(), into.data(), into.size(), MSG_DONTWAIT), Until::readable);
  }
  Moved write(std::string_view from) override {
    return moved(send(socket_.get(), from.data(), from.size(), MSG_NOSIGNAL | MSG_DONTWAIT), Until::writable);
  }

 private:
  static Moved moved(ssize_t result, Until until) {
    if (result > 0) return {static_cast<size_t>(result), until};
    return {0, result < 0 && (errno == EAGAIN || errno == EINTR) ? until : Until::closed};
  }
  os::Fd socket_;
};

}  // namespace

std::unique_ptr<Transport> plain_transport(os::Fd socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

}  // namespace carve::http
