// What a program hands to cuModuleLoadData, read for what a driver must know without executing it: the
// kernels, their parameters, limits and static shared memory, and the global variables.
//
// PTX is text, read here; cubins and fatbins are in binary_image.h. The grammar used here is that of the
// declarations only (PTX ISA, "Performance-Tuning Directives", "Kernel Function Parameters"). Bodies are
// skipped brace by brace.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace carve::sim {

// The PTX ISA allows 4,352 bytes, and 32,764 from version 8.1 on.
inline constexpr uint64_t kMostParameterBytes = 32'764;

struct Parameter {
  uint32_t offset, bytes;
};

struct KernelImage {
  std::string name;
  std::vector<Parameter> parameters;
  uint32_t parameter_bytes = 0;
  uint32_t static_shared = 0;
  uint32_t max_threads = 1024;
  uint32_t registers = 0;  // Of each thread; 0 where no compiler has chosen yet.
};

struct GlobalImage {
  std::string name;
  uint64_t bytes = 0;
  bool constant = false;
};

struct Image {
  unsigned ptx_major = 0, ptx_minor = 0, target = 0;  // target 86: sm_86
  uint64_t code_bytes = 0;                            // Of PTX the text, for want of code.
  std::vector<KernelImage> kernels;
  std::vector<GlobalImage> globals;
};

enum class ImageError {
  none,
  not_ptx,
  syntax,
  unsupported_version,
  broken,  // A cubin or fatbin whose parts do not fit together.
  no_code  // Nothing in it runs on this architecture.
};

// Parses a PTX module. It must carry .version and .target, as the language demands.
ImageError parse_ptx(const std::string& text, Image*);

}  // namespace carve::sim
