#include "os/kept_socket.h"

#include <sys/stat.h>

#include <utility>

namespace carve::os {

KeptSocket::KeptSocket(std::string path, std::function<Outcome<Fd>()> make, std::function<void(Fd)> serve)
    : path_(std::move(path)), make_(std::move(make)), serve_(std::move(serve)), file_(present()) {}

std::optional<KeptSocket::FileId> KeptSocket::present() const {
  struct stat seen {};
  if (lstat(path_.c_str(), &seen) != 0) return std::nullopt;
  return FileId{seen.st_dev, seen.st_ino};
}

std::optional<std::string> KeptSocket::check() {
  const auto now = present();
  if (now && now == file_) return std::nullopt;
  const char* what = now ? "was replaced" : "was removed";
  auto made = make_();
  if (!made) {
    if (std::exchange(failed_, true)) return std::nullopt;
    return fmt::format("the socket {} {} and cannot be recreated: {}", path_, what, made.error().message);
  }
  failed_ = false;
  file_ = present();
  serve_(std::move(*made));
  return fmt::format("the socket {} {} and has been recreated", path_, what);
}

}  // namespace carve::os
