#include "core/invariant.h"

#include <unistd.h>

#include <cstdlib>

namespace carve {
namespace {

// One line of text in a fixed buffer. Text that does not fit is cut off.
class Line {
 public:
  void add(const char* text) {
    while (*text != '\0' && size_ < sizeof text_ - 1) text_[size_++] = *text++;
  }
  void add(unsigned number) {
    char digits[12];
    char* at = digits + sizeof digits - 1;
    *at = '\0';
    do *--at = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    add(at);
  }
  void print() {
    text_[size_++] = '\n';
    // A failed write is ignored, because the process aborts in any case.
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text_, size_);
  }

 private:
  char text_[1024];
  size_t size_ = 0;
};

}  // namespace

void break_invariant(const char* condition, const char* message, std::source_location where) noexcept {
  Line line;
  line.add(where.file_name());
  line.add(":");
  line.add(where.line());
  line.add(": ");
  line.add(where.function_name());
  line.add(": broken invariant: ");
  line.add(condition);
  if (*message != '\0') {
    line.add(": ");
    line.add(message);
  }
  line.print();
  std::abort();
}

}  // namespace carve
