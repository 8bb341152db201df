// Modules that a compiler has translated: a cubin is an ELF file of one architecture, a fatbin holds several
// cubins and PTX texts, each whole or compressed, of which the driver takes what fits the device best.
// Nothing is executed, so only the declarations are read: kernels with their parameters, registers, shared
// memory and limits, and global variables.
//
// Neither format is documented. What is used here was observed in the output of ptxas 12.4 and 12.9 (sm_52 to
// sm_120) and of libnvfatbin 12.9 and 13.5, in all its compression modes; binary_image_test.cc holds some of
// it. Pure; hostile bytes are refused, whatever they are.
#pragma once

#include <string_view>

#include "sim/image/image.h"

namespace carve::sim {

// Programs hand over an address without a length. How many bytes lie there by the image's own headers, of
// which the first 64 are read and the table of sections; 0 if it is neither a cubin nor a fatbin.
size_t binary_extent(const void*);
// Whether an image that begins with these four bytes is one.
bool is_binary(uint32_t magic);

// A cubin of an architecture that runs on a device of this compute capability (86: 8.6): the same major
// number and not a newer minor one.
ImageError parse_cubin(std::string_view, unsigned capability, Image*);
// The cubin of the newest architecture that runs on the device, and else the newest PTX that it can
// translate.
ImageError parse_fatbin(std::string_view, unsigned capability, Image*);
// Either.
ImageError parse_binary(std::string_view, unsigned capability, Image*);

}  // namespace carve::sim
