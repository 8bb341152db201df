// An LZ4 block: literals and matches in turn. The high half of a token is the number of literals, the low
// half the length of the match less 4; 15 goes on in bytes that are added up until one is not 255. A match
// begins up to 65,535 bytes back. The last sequence has literals alone.
#include "sim/libcuda/decompress.h"

namespace carve::sim {
namespace {

class Bytes {
 public:
  explicit Bytes(std::string_view all) : rest_(all) {}
  bool empty() const { return rest_.empty(); }
  bool take(unsigned* out) {
    if (rest_.empty()) return false;
    *out = static_cast<unsigned char>(rest_.front());
    rest_.remove_prefix(1);
    return true;
  }
  bool take(size_t n, std::string* out) {
    if (n > rest_.size()) return false;
    out->append(rest_.substr(0, n));
    rest_.remove_prefix(n);
    return true;
  }

 private:
  std::string_view rest_;
};

bool length(Bytes& in, size_t* n) {
  if (*n < 15) return true;
  unsigned more = 255;
  while (more == 255) {
    if (!in.take(&more)) return false;
    *n += more;
  }
  return true;
}

}  // namespace

bool decompress_lz4(std::string_view from, size_t bytes, std::string* out) {
  Bytes in(from);
  out->clear();
  unsigned token = 0, low = 0, high = 0;
  while (in.take(&token)) {
    size_t literals = token >> 4, match = token & 15;
    if (!length(in, &literals) || literals > bytes - out->size() || !in.take(literals, out)) return false;
    if (in.empty()) break;
    if (!in.take(&low) || !in.take(&high) || !length(in, &match)) return false;
    const size_t back = low | high << 8;
    match += 4;
    if (back == 0 || back > out->size() || match > bytes - out->size()) return false;
    for (size_t i = 0; i < match; ++i) out->push_back((*out)[out->size() - back]);
  }
  return out->size() == bytes;
}

}  // namespace carve::sim
