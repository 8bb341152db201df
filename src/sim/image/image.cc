// Parses the declarations in PTX. It works on tokens without comments and white space, so a declaration may
// span any number of lines.
#include "sim/image/image.h"

#include <algorithm>
#include <cctype>
#include <string_view>

namespace carve::sim {
namespace {

class Tokens {
 public:
  explicit Tokens(std::string_view text) : rest_(text) { advance(); }

  std::string_view peek() const { return token_; }
  std::string_view take() {
    const std::string_view t = token_;
    advance();
    return t;
  }
  bool take_if(std::string_view wanted) {
    if (token_ != wanted) return false;
    advance();
    return true;
  }
  bool done() const { return token_.empty(); }

  // Skips past a block or a list whose opening token was just read.
  void skip_to_close(std::string_view open, std::string_view close) {
    for (unsigned depth = 1; depth && !done();) {
      const std::string_view t = take();
      depth += t == open ? 1 : 0;
      depth -= t == close ? 1 : 0;
    }
  }

 private:
  static bool word(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '$' || c == '%' || c == '.';
  }

  void advance() {
    for (;;) {
      while (!rest_.empty() && std::isspace(static_cast<unsigned char>(rest_.front())))
        rest_.remove_prefix(1);
      if (rest_.starts_with("//"))
        rest_.remove_prefix(std::min(rest_.find('\n'), rest_.size()));
      else if (rest_.starts_with("/*"))
        rest_.remove_prefix(std::min(rest_.find("*/", 2), rest_.size() - 2) + 2);
      else
        break;
    }
    size_t n = 0;
    while (n < rest_.size() && word(rest_[n])) ++n;
    if (n == 0 && !rest_.empty()) n = 1;
    if (n == 1 && rest_.front() == '"') n = std::min(rest_.find('"', 1), rest_.size() - 1) + 1;
    token_ = rest_.substr(0, n);
    rest_.remove_prefix(n);
  }

  std::string_view rest_, token_;
};

uint64_t number(std::string_view t) {
  uint64_t n = 0;
  for (const char c : t) {
    if (!std::isdigit(static_cast<unsigned char>(c))) break;
    n = n * 10 + static_cast<uint64_t>(c - '0');
  }
  return n;
}

// Returns the bytes of a fundamental type (.u64, .f32, .b8, .pred), or 0 for other words.
uint32_t bytes_of(std::string_view type) {
  if (type == ".pred") return 1;
  if (type.size() < 3 || type[0] != '.' || std::string_view("usfb").find(type[1]) == std::string_view::npos)
    return 0;
  const uint64_t bits = number(type.substr(2));
  return bits >= 8 && bits <= 128 ? static_cast<uint32_t>(bits / 8) : 0;
}

struct Variable {
  std::string_view name;
  uint64_t bytes = 0;
  uint32_t align = 0;
};

// [.align N] [.v2|.v4] .type [.ptr ...] name [N] ... up to (not including) , ) ; or =
bool variable(Tokens& t, Variable* v) {
  uint32_t element = 0, vector = 1;
  while (!t.done()) {
    const std::string_view at = t.peek();
    if (at == ".align") {
      t.take();
      v->align = static_cast<uint32_t>(number(t.take()));
    } else if (at == ".v2" || at == ".v4" || at == ".v8") {
      vector = static_cast<uint32_t>(at[2] - '0');
      t.take();
    } else if (at == ".texref" || at == ".samplerref" || at == ".surfref") {
      element = 8;
      t.take();
    } else if (bytes_of(at)) {
      element = bytes_of(at);
      t.take();
    } else if (at.front() == '.') {
      t.take();  // .ptr, .global and other attributes of a parameter
    } else {
      break;
    }
  }
  if (t.done() || !element) return false;
  v->name = t.take();
  v->bytes = static_cast<uint64_t>(element) * vector;
  v->align = std::max(v->align, element * vector);
  while (t.take_if("[")) {
    v->bytes *= t.peek() == "]" ? 1 : number(t.take());
    if (!t.take_if("]")) return false;
  }
  return true;
}

bool parameters(Tokens& t, KernelImage* kernel) {
  uint64_t offset = 0;
  while (!t.take_if(")")) {
    if (!t.take_if(".param")) return false;
    Variable v;
    if (!variable(t, &v)) return false;
    const uint64_t align = std::max<uint64_t>(v.align, 1);
    offset = (offset + align - 1) / align * align;
    if (align > max_parameter_bytes || v.bytes > max_parameter_bytes ||
        offset + v.bytes > max_parameter_bytes)
      return false;
    kernel->parameters.push_back({static_cast<uint32_t>(offset), static_cast<uint32_t>(v.bytes)});
    offset += v.bytes;
    t.take_if(",");
    if (t.done()) return false;
  }
  kernel->parameter_bytes = static_cast<uint32_t>(offset);
  return true;
}

// Reads a body only for its static shared memory; other statements are skipped.
void body(Tokens& t, KernelImage* kernel) {
  for (unsigned depth = 1; depth && !t.done();) {
    const std::string_view at = t.take();
    depth += at == "{" ? 1 : 0;
    depth -= at == "}" ? 1 : 0;
    Variable v;
    if (at == ".shared" && variable(t, &v)) kernel->static_shared += static_cast<uint32_t>(v.bytes);
  }
}

bool entry(Tokens& t, Image* image) {
  KernelImage kernel;
  kernel.name = std::string(t.take());
  if (t.take_if("(") && !parameters(t, &kernel)) return false;
  while (!t.done() && t.peek() != "{" && t.peek() != ";") {
    const std::string_view directive = t.take();
    if (directive != ".maxntid" && directive != ".reqntid") continue;
    uint64_t threads = number(t.take());
    while (t.take_if(",")) threads *= number(t.take());
    kernel.max_threads = static_cast<uint32_t>(std::clamp<uint64_t>(threads, 1, 1024));
  }
  if (t.take_if("{")) body(t, &kernel);
  image->kernels.push_back(std::move(kernel));
  return true;
}

}  // namespace

ImageError parse_ptx(const std::string& text, Image* image) {
  Tokens t(text);
  if (!t.take_if(".version")) return ImageError::not_ptx;
  const std::string_view version = t.take();
  image->ptx_major = static_cast<unsigned>(number(version));
  if (const size_t dot = version.find('.'); dot != std::string_view::npos)
    image->ptx_minor = static_cast<unsigned>(number(version.substr(dot + 1)));
  if (image->ptx_major < 1) return ImageError::syntax;
  if (image->ptx_major > 9) return ImageError::unsupported_version;
  image->code_bytes = text.size();
  uint64_t module_shared = 0;
  while (!t.done()) {
    const std::string_view at = t.take();
    if (at == ".target") {
      const std::string_view target = t.take();
      if (target.starts_with("sm_")) image->target = static_cast<unsigned>(number(target.substr(3)));
    } else if (at == ".entry") {
      if (!entry(t, image)) return ImageError::syntax;
    } else if (at == ".func") {
      while (!t.done() && t.peek() != "{" && t.peek() != ";") t.take();
      if (t.take_if("{")) t.skip_to_close("{", "}");
    } else if (at == ".global" || at == ".const" || at == ".shared") {
      Variable v;
      if (!variable(t, &v)) return ImageError::syntax;
      if (at == ".shared")
        module_shared += v.bytes;
      else
        image->globals.push_back({std::string(v.name), v.bytes, at == ".const"});
      while (!t.done() && t.peek() != ";") t.take() == "{" ? t.skip_to_close("{", "}") : void();
    }
  }
  if (image->target == 0) return ImageError::syntax;
  for (KernelImage& k : image->kernels) k.static_shared += static_cast<uint32_t>(module_shared);
  return ImageError::none;
}

}  // namespace carve::sim
