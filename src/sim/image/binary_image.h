// Modules that a compiler has translated (cubins and fatbins). A cubin is an ELF file for one architecture. A
// fatbin contains several cubins and PTX texts, each plain or compressed, from which the driver chooses the
// one that fits the device best. No code is executed, so only the declarations are read: kernels with their
// parameters, registers, shared memory and limits, and global variables.
//
// Neither format is documented. The facts used here were observed in the output of ptxas 12.4 and 12.9 (sm_52
// to sm_120) and of libnvfatbin 12.9 and 13.5, in all its compression modes; binary_image_test.cc contains
// some of that output. The functions are pure and reject malformed bytes of any kind.
#pragma once

#include <string_view>

#include "sim/image/image.h"

namespace carve::sim {

// Returns the size of an image according to its own headers, because programs pass an address without a
// length. Reads the first 64 bytes and the table of sections. Returns 0 if it is neither a cubin nor a
// fatbin.
size_t binary_extent(const void*);
// Returns whether an image that begins with these four bytes is a cubin or a fatbin.
bool is_binary(uint32_t magic);

// Parses a cubin for an architecture that runs on a device of this compute capability (86 is 8.6): the same
// major number and not a newer minor one.
ImageError parse_cubin(std::string_view, unsigned capability, Image*);
// Parses the cubin for the newest architecture that runs on the device. If there is none, parses the newest
// PTX that the device can translate.
ImageError parse_fatbin(std::string_view, unsigned capability, Image*);
// Parses a cubin or a fatbin.
ImageError parse_binary(std::string_view, unsigned capability, Image*);

}  // namespace carve::sim
