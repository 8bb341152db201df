// Cubins. A kernel is a global function symbol that is marked as an entry (0x10 in st_other). K's code is in
// .text.K, its attributes are in .nv.info.K, and its static shared memory is the size of .nv.shared.K.
// Attributes are {format, code, 16 bits}; with format 4 the 16 bits are the length of the following data:
//
//   .nv.info    0x2f  {symbol, registers}
//   .nv.info.K  0x17  a parameter: {index, ordinal:16, offset:16, ... bytes in the upper 14 of the last 32}
//               0x45  the same for large ones: {index, ordinal:16, offset:16, bytes:32}
//               0x19  bytes of all parameters (format 3: in the 16 bits themselves)
//               0x05  the maximum of threads, three numbers (.maxntid)
//               0x10  the threads, three numbers (.reqntid)
//
// The architecture is in e_flags: the low byte, and from ABI version 8 on the byte above it.
#include <algorithm>
#include <cstring>
#include <map>
#include <span>

#include "sim/image/binary_image.h"

namespace carve::sim {
namespace {

constexpr uint16_t cuda_machine = 190;
constexpr uint32_t symbol_table = 2, no_bits = 8;

struct ElfHeader {
  uint32_t magic;
  uint8_t elf_class, data, version, os, abi_version, padding[7];
  uint16_t type, machine;
  uint32_t file_version;
  uint64_t entry, programs, sections;
  uint32_t flags;
  uint16_t header_size, program_size, program_count, section_size, section_count, names;
};
static_assert(sizeof(ElfHeader) == 64);
struct Section {
  uint32_t name, type;
  uint64_t flags, address, offset, size;
  uint32_t link, info;
  uint64_t align, entry_size;
};
static_assert(sizeof(Section) == 64);
struct Symbol {
  uint32_t name;
  uint8_t info, other;
  uint16_t section;
  uint64_t value, size;
};
static_assert(sizeof(Symbol) == 24);

bool is_cubin(const ElfHeader& h) {
  return h.magic == elf_magic && h.elf_class == 2 && h.data == 1 && h.machine == cuda_machine &&
         h.section_size == sizeof(Section);
}

// Returns false if the bytes end too early.
template <class T>
bool read_at(std::string_view all, uint64_t at, T* out) {
  if (at > all.size() || sizeof(T) > all.size() - at) return false;
  std::memcpy(out, all.data() + at, sizeof(T));
  return true;
}

std::string_view text_at(std::string_view table, uint64_t at) {
  if (at >= table.size()) return {};
  const std::string_view rest = table.substr(at);
  return rest.substr(0, std::min(rest.find('\0'), rest.size()));
}

struct Attribute {
  unsigned format, code, value;
  std::string_view bytes;

  uint32_t word(size_t i) const {
    uint32_t w = 0;
    read_at(bytes, 4 * i, &w);
    return w;
  }
};
// Calls f for each attribute. Returns false if the last one is cut off.
template <class F>
bool each_attribute(std::string_view in, F f) {
  while (!in.empty()) {
    uint32_t head = 0;
    if (!read_at(in, 0, &head)) return false;
    in.remove_prefix(4);
    Attribute a{head & 255, head >> 8 & 255, head >> 16, {}};
    if (a.format == 4) {
      if (a.value > in.size()) return false;
      a.bytes = in.substr(0, a.value);
      in.remove_prefix(a.value);
    }
    f(a);
  }
  return true;
}

uint32_t threads_of(const Attribute& a) {
  uint64_t n = 1;
  for (size_t i = 0; i < 3; ++i) n = std::min<uint64_t>(n * std::max(a.word(i), 1u), 1024);
  return static_cast<uint32_t>(n);
}

class Cubin {
 public:
  explicit Cubin(std::string_view all) : all_(all) {}

  ImageError parse(unsigned capability, Image* image) {
    ElfHeader h;
    if (!read_at(all_, 0, &h) || !is_cubin(h)) return ImageError::broken;
    image->target = h.abi_version >= 8 ? h.flags >> 8 & 255 : h.flags & 255;
    if (image->target / 10 != capability / 10 || image->target > capability) return ImageError::no_code;
    for (unsigned i = 0; i < h.section_count; ++i) {
      Section s;
      if (!read_at(all_, h.sections + i * uint64_t{sizeof s}, &s)) return ImageError::broken;
      if (s.type != no_bits && (s.offset > all_.size() || s.size > all_.size() - s.offset))
        return ImageError::broken;
      sections_.push_back(s);
    }
    if (h.names >= sections_.size()) return ImageError::broken;
    const std::string_view names = bytes_of(sections_[h.names]);
    for (const Section& s : sections_) {
      by_name_.emplace(text_at(names, s.name), &s);
      names_.push_back(text_at(names, s.name));
      if (names_.back().starts_with(".text.")) image->code_bytes += s.size;
    }
    return symbols(image) ? ImageError::none : ImageError::broken;
  }

 private:
  std::string_view bytes_of(const Section& s) const {
    return s.type == no_bits ? std::string_view{} : all_.substr(s.offset, s.size);
  }
  const Section* section(const std::string& name) const {
    const auto found = by_name_.find(name);
    return found == by_name_.end() ? nullptr : found->second;
  }

  bool symbols(Image* image) {
    const auto table =
        std::ranges::find_if(sections_, [](const Section& s) { return s.type == symbol_table; });
    if (table == sections_.end() || table->link >= sections_.size()) return false;
    const std::string_view all = bytes_of(*table), names = bytes_of(sections_[table->link]);
    std::map<uint32_t, uint32_t> registers;
    if (const Section* info = section(".nv.info"))
      if (!each_attribute(bytes_of(*info), [&](const Attribute& a) {
            if (a.code == 0x2f) registers[a.word(0)] = a.word(1);
          }))
        return false;
    Symbol s;
    for (uint32_t i = 0; read_at(all, i * uint64_t{sizeof s}, &s); ++i) {
      constexpr unsigned global_binding = 1, object_type = 1, function_type = 2, entry_flag = 0x10;
      const std::string name(text_at(names, s.name));
      if (s.info >> 4 != global_binding || s.section >= sections_.size() || s.section == 0 || name.empty())
        continue;
      if ((s.info & 15) == object_type)
        image->globals.push_back({name, s.size, names_[s.section].starts_with(".nv.constant")});
      if ((s.info & 15) != function_type || !(s.other & entry_flag)) continue;
      KernelImage k;
      k.name = name;
      k.registers = std::min(registers[i], 255u);
      if (!attributes(&k)) return false;
      image->kernels.push_back(std::move(k));
    }
    return true;
  }

  bool attributes(KernelImage* k) const {
    if (const Section* shared = section(".nv.shared." + k->name))
      k->static_shared = static_cast<uint32_t>(std::min<uint64_t>(shared->size, 1u << 30));
    const Section* info = section(".nv.info." + k->name);
    if (!info) return true;
    std::map<uint32_t, Parameter> parameters;
    uint64_t end = 0;
    const auto parameter = [&](const Attribute& a, uint32_t bytes) {
      const Parameter p{a.word(1) >> 16, bytes};
      parameters[a.word(1) & 0xffff] = p;
      end = std::max(end, uint64_t{p.offset} + p.bytes);
    };
    const bool whole = each_attribute(bytes_of(*info), [&](const Attribute& a) {
      if (a.code == 0x17) parameter(a, a.word(2) >> 18);
      if (a.code == 0x45) parameter(a, a.word(2));
      if (a.code == 0x19) end = std::max<uint64_t>(end, a.value);
      if (a.code == 0x05 || a.code == 0x10) k->max_threads = threads_of(a);
    });
    if (!whole || end > max_parameter_bytes) return false;
    k->parameter_bytes = static_cast<uint32_t>(end);
    for (const auto& [ordinal, p] : parameters) k->parameters.push_back(p);
    return true;
  }

  std::string_view all_;
  std::vector<Section> sections_;
  std::vector<std::string_view> names_;
  std::map<std::string_view, const Section*> by_name_;
};

}  // namespace

ImageError parse_cubin(std::string_view all, unsigned capability, Image* image) {
  return Cubin(all).parse(capability, image);
}

// Returns the length of a cubin, which is the end of its last table or section.
size_t cubin_extent(const char* at) {
  ElfHeader h;
  std::memcpy(&h, at, sizeof h);
  if (!is_cubin(h)) return 0;
  uint64_t end = h.sections + uint64_t{h.section_count} * sizeof(Section);
  for (unsigned i = 0; i < h.section_count; ++i) {
    Section s;
    std::memcpy(&s, at + h.sections + i * sizeof s, sizeof s);
    if (s.type != no_bits) end = std::max(end, s.offset + s.size);
  }
  return end;
}

}  // namespace carve::sim
