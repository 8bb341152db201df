// Runs a fuzz target without libFuzzer: on every file of its corpus, then on mutations of these files from a
// fixed seed. The inputs are the same in each run with any compiler; the preset `asan` explores.
//   fuzz_NAME CORPUS [MUTATIONS [SEED]]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

std::vector<std::string> corpus_of(const char* folder) {
  std::vector<std::string> inputs{""};
  if (!std::filesystem::is_directory(folder)) return inputs;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    std::ifstream in(entry.path(), std::ios::binary);
    inputs.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return inputs;
}

// Changes a few bytes, or removes, doubles or inserts a part.
void mutate(std::string& text, const std::vector<std::string>& others, std::mt19937_64& random) {
  for (auto changes = random() % 4 + 1; changes > 0; --changes) {
    const size_t at = text.empty() ? 0 : random() % text.size();
    const size_t length = random() % 16;
    switch (random() % 5) {
      case 0:
        if (!text.empty()) text[at] = static_cast<char>(random());
        break;
      case 1: text.erase(at, length); break;
      case 2: text.insert(at, text.substr(at, length)); break;
      case 3: text.insert(at, std::string(length, static_cast<char>(random()))); break;
      case 4: {
        const std::string& other = others[random() % others.size()];
        if (!other.empty()) text.insert(at, other.substr(random() % other.size(), length));
        break;
      }
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> inputs = corpus_of(argc > 1 ? argv[1] : "");
  const auto run = [](const std::string& input) {
    LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(input.data()), input.size());
  };
  for (const std::string& input : inputs) run(input);
  const char* const long_form = std::getenv("CARVE_LONG");
  uint64_t mutations = long_form != nullptr && *long_form != '\0' ? 1'000'000 : 20'000;
  if (argc > 2) mutations = std::strtoull(argv[2], nullptr, 10);
  std::mt19937_64 random(argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 20);
  for (uint64_t i = 0; i < mutations; ++i) {
    std::string input = inputs[random() % inputs.size()];
    mutate(input, inputs, random);
    run(input);
  }
  std::printf("%zu inputs of the corpus and %llu mutations\n", inputs.size(),
              static_cast<unsigned long long>(mutations));
}
