// The image that a program passes to cuModuleLoadData. Kernels are not executed, so only their declarations
// are read: the kernels, their parameters, limits and static shared memory, and the global variables.
//
// PTX is text and is read here; for cubins and fatbins see binary_image.h. Only the grammar of declarations
// is used (PTX ISA, "Performance-Tuning Directives", "Kernel Function Parameters"). Bodies are skipped by
// counting braces.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carve::sim {

inline constexpr uint32_t elf_magic = 0x464c457f;  // 0x7f and "ELF", little endian.
// The PTX ISA allows 4,352 bytes of parameters, and 32,764 from version 8.1 on.
inline constexpr uint64_t max_parameter_bytes = 32'764;

struct Parameter {
  uint32_t offset, bytes;
};

struct KernelImage {
  std::string name;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_shared = 0;
  uint32_t max_threads = 1024;
  uint32_t registers = 0;  // Registers of each thread; 0 if no compiler has chosen yet.
};

struct GlobalImage {
  std::string name;
  uint64_t bytes = 0;
  bool constant = false;
};

struct Image {
  unsigned ptx_major = 0, ptx_minor = 0, target = 0;  // target 86 is sm_86.
  uint64_t code_bytes = 0;  // For PTX, the length of the text, because there is no code.
  std::vector<KernelImage> kernels;
  std::vector<GlobalImage> globals;
};

enum class ImageError {
  none,
  not_ptx,
  syntax,
  unsupported_version,
  broken,  // A cubin or fatbin whose parts are inconsistent.
  no_code  // The image contains no code for this architecture.
};

// Parses a PTX module. The language requires .version and .target.
ImageError parse_ptx(const std::string& text, Image*);

}  // namespace carve::sim
