#include "controller/objects/secret_text.h"

#include <openssl/evp.h>
#include <sys/random.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

namespace carve::controller {

Outcome<std::string> random_secret() {
  std::array<unsigned char, 32> bytes{};
  if (getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
    return failure(FailureKind::unavailable, "the kernel returned no random bytes: {}", strerror(errno));
  std::array<unsigned char, 45> coded{};
  const int length = EVP_EncodeBlock(coded.data(), bytes.data(), static_cast<int>(bytes.size()));
  std::string out(coded.begin(), coded.begin() + length);
  std::ranges::replace(out, '+', '-');
  std::ranges::replace(out, '/', '_');
  out.erase(out.find_last_not_of('=') + 1);
  return out;
}

std::string sha256_hex(std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned size = 0;
  EVP_Digest(text.data(), text.size(), digest.data(), &size, EVP_sha256(), nullptr);
  std::string out;
  for (unsigned i = 0; i < size; ++i) out += fmt::format("{:02x}", digest[i]);
  return out;
}

}  // namespace carve::controller
