// The code of {fmt}, compiled once. Debian provides it as headers and as a shared library. The headers would
// be compiled again with each file that formats text (2.5 s each), and Carve's programs must not need the
// shared library. format-inl.h defines the functions that the headers only declare. Below are the explicit
// instantiations that the headers require, only for char. If a version of {fmt} requires further ones, the
// program fails to link.
#include <fmt/format-inl.h>

FMT_BEGIN_NAMESPACE
namespace detail {

template FMT_API auto thousands_sep_impl(locale_ref) -> thousands_sep_result<char>;
template FMT_API auto decimal_point_impl(locale_ref) -> char;
template FMT_API auto dragonbox::to_decimal(float) noexcept -> dragonbox::decimal_fp<float>;
template FMT_API auto dragonbox::to_decimal(double) noexcept -> dragonbox::decimal_fp<double>;
template FMT_API void buffer<char>::append(const char*, const char*);
template FMT_API void vformat_to(buffer<char>&, string_view, basic_format_args<FMT_BUFFER_CONTEXT(char)>,
                                 locale_ref);

}  // namespace detail
FMT_END_NAMESPACE
