// Tests which files -f reads.
#include "cli/document_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace carve::cli {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class DocumentFiles : public testing::Test {
 protected:
  DocumentFiles() {
    char name[] = "/tmp/carve-documents-XXXXXX";
    folder_ = mkdtemp(name);
  }
  ~DocumentFiles() override { std::filesystem::remove_all(folder_); }

  void add(const std::string& file) const {
    const std::filesystem::path path = folder_ / file;
    std::filesystem::create_directories(path.parent_path());
    std::ofstream(path) << "{}";
  }
  // Returns the files with their paths below the folder, or the error.
  std::vector<std::string> found(Folders folders) const {
    const auto files = document_files({folder_.string()}, folders);
    if (!files) return {files.error()};
    std::vector<std::string> out;
    for (const std::string& file : *files) out.push_back(std::filesystem::relative(file, folder_).string());
    return out;
  }

  std::filesystem::path folder_;
};

TEST_F(DocumentFiles, takes_the_documents_of_a_folder_in_the_order_of_their_names) {
  for (const char* file : {"b.yaml", "a.yml", "c.json", "README.md", "yaml", "inner/d.yaml"}) add(file);
  std::filesystem::create_directory(folder_ / "folder.yaml");
  EXPECT_THAT(found(Folders::only_named), ElementsAre("a.yml", "b.yaml", "c.json"));
  EXPECT_THAT(found(Folders::with_subfolders), ElementsAre("a.yml", "b.yaml", "c.json", "inner/d.yaml"));
}

TEST_F(DocumentFiles, keeps_named_files_whatever_they_are_called) {
  add("a.yaml");
  const std::string file = (folder_ / "a.yaml").string();
  const auto files = document_files({"-", "/nonexistent.txt", folder_.string()}, Folders::only_named);
  ASSERT_TRUE(files);
  EXPECT_THAT(*files, ElementsAre("-", "/nonexistent.txt", file));
}

TEST_F(DocumentFiles, does_not_follow_links_to_folders) {
  add("a.yaml");
  std::filesystem::create_directory_symlink(folder_, folder_ / "loop");
  EXPECT_THAT(found(Folders::with_subfolders), ElementsAre("a.yaml"));
}

TEST_F(DocumentFiles, rejects_a_folder_without_documents) {
  add("inner/a.yaml");
  EXPECT_THAT(found(Folders::only_named),
              ElementsAre(HasSubstr("has no files *.json, *.yaml or *.yml; -R also reads its subfolders")));
  std::filesystem::remove_all(folder_ / "inner");
  EXPECT_THAT(found(Folders::with_subfolders), ElementsAre(testing::EndsWith("*.json, *.yaml or *.yml")));
  EXPECT_THAT(document_files({"-", "-"}, Folders::only_named).error(), HasSubstr("is given twice"));
}

TEST_F(DocumentFiles, rejects_more_files_than_the_limit) {
  for (size_t i = 0; i <= max_document_files; ++i)
    std::ofstream(folder_ / ("f" + std::to_string(i) + ".json"));
  EXPECT_THAT(found(Folders::only_named), ElementsAre(HasSubstr("has more than 10000 files of documents")));
}

}  // namespace
}  // namespace carve::cli
