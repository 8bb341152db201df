#include "http/files.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace carve::http {
namespace {

// A folder "served" with some files, and next to it a file that must not be reachable.
struct Folder {
  std::string root = [] {
    char name[] = "/tmp/carve-files-XXXXXX";
    return std::string(mkdtemp(name));
  }();
  std::optional<Files> files;

  Folder() {
    write("secret.txt", "secret");
    write("served/index.html", "<p>index</p>");
    write("served/app.js", "0123456789");
    write("served/.hidden", "hidden");
    write("served/empty", "");
    write("served/assets/a b.css", "p {}");
    std::filesystem::create_symlink("../secret.txt", root + "/served/link.txt");
    std::filesystem::create_symlink("..", root + "/served/up");
    std::filesystem::create_symlink("app.js", root + "/served/inside.js");
    EXPECT_EQ(mkfifo((root + "/served/fifo").c_str(), 0600), 0);
    auto opened = Files::open(root + "/served", [](unsigned status, const std::string& detail) {
      return Response{status, "application/problem+json", detail};
    });
    EXPECT_TRUE(opened);
    files = std::move(*opened);
  }
  ~Folder() { std::filesystem::remove_all(root); }

  void write(const std::string& name, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(root + "/" + name).parent_path());
    std::ofstream(root + "/" + name) << content;
  }
  Response ask(const std::string& path, std::vector<Header> headers = {},
               const std::string& method = "GET") const {
    Request request{method, path, "", "", {}};
    for (Header& h : headers) request.headers.add(h.name, h.value);
    return files->answer(request);
  }
};

std::string content_of(const Response& response) {
  if (const auto* text = std::get_if<std::string>(&response.content)) return *text;
  const auto& range = std::get<FileRange>(response.content);
  std::string out(range.length, '\0');
  EXPECT_EQ(pread(range.file.get(), out.data(), out.size(), static_cast<off_t>(range.offset)),
            static_cast<ssize_t>(range.length));
  return out;
}

std::string header(const Response& response, std::string_view name) {
  for (const Header& h : response.headers)
    if (h.name == name) return h.value;
  return "";
}

TEST(Files, have_a_type_an_etag_and_a_cache_rule) {
  const Folder folder;
  const struct {
    const char *path, *type, *content, *cache;
  } rows[] = {
      {"/", "text/html; charset=utf-8", "<p>index</p>", "no-cache"},
      {"/index.html", "text/html; charset=utf-8", "<p>index</p>", "no-cache"},
      {"/app.js", "text/javascript; charset=utf-8", "0123456789", "no-cache"},
      {"/empty", "application/octet-stream", "", "no-cache"},
      {"/%61pp.js", "text/javascript; charset=utf-8", "0123456789", "no-cache"},
      {"/assets/a%20b.css", "text/css; charset=utf-8", "p {}", "public, max-age=31536000, immutable"}};
  for (const auto& row : rows) {
    const Response response = folder.ask(row.path);
    EXPECT_EQ(response.status, 200u) << row.path;
    EXPECT_EQ(response.type, row.type);
    EXPECT_EQ(content_of(response), row.content);
    EXPECT_EQ(header(response, "Cache-Control"), row.cache);
    EXPECT_EQ(header(response, "ETag").front(), '"');
    EXPECT_EQ(header(response, "X-Content-Type-Options"), "nosniff");
  }
}

TEST(Files, outside_the_folder_or_not_regular_are_not_found) {
  const Folder folder;
  for (const char* path : {"/../secret.txt",
                           "/%2e%2e/secret.txt",
                           "/..%2fsecret.txt",
                           "/assets/../../secret.txt",
                           "//secret.txt",
                           "/link.txt",
                           "/up/secret.txt",
                           "/inside.js",
                           "/assets",
                           "/assets/",
                           "/.hidden",
                           "/fifo",
                           "/app.js/",
                           "/app.js/x",
                           "/none",
                           "",
                           "app.js",
                           "/app.js%00",
                           "/%",
                           "/%4",
                           "/%zz",
                           "/./app.js",
                           "/app.js%00.html",
                           "/%c0%ae%c0%ae/secret.txt",
                           "/assets/%2e%2e/app.js"}) {
    const Response response = folder.ask(path);
    EXPECT_EQ(response.status, 404u) << path;
    EXPECT_EQ(content_of(response).find("secret\n"), std::string::npos) << path;
  }
  EXPECT_EQ(folder.ask("/" + std::string(5000, 'a')).status, 404u);
  EXPECT_EQ(folder.ask("/app.js", {}, "POST").status, 405u);
  EXPECT_EQ(header(folder.ask("/app.js", {}, "DELETE"), "Allow"), "GET, HEAD");
}

TEST(Files, are_not_sent_again_if_the_client_has_them) {
  const Folder folder;
  const std::string etag = header(folder.ask("/app.js"), "ETag");
  for (const std::string& list : {etag, "W/" + etag, "\"x\", " + etag, std::string("*"), etag + ",\"y\""}) {
    const Response response = folder.ask("/app.js", {{"If-None-Match", list}});
    EXPECT_EQ(response.status, 304u) << list;
    EXPECT_EQ(header(response, "ETag"), etag);
    EXPECT_EQ(content_of(response), "");
  }
  for (const char* list : {"", "\"x\"", ",", "W/"})
    EXPECT_EQ(folder.ask("/app.js", {{"If-None-Match", list}}).status, 200u) << list;
  folder.write("served/app.js", "9876543210 ");
  EXPECT_EQ(folder.ask("/app.js", {{"If-None-Match", etag}}).status, 200u);
}

TEST(Files, support_a_single_range) {
  const Folder folder;
  const struct {
    const char* range;
    unsigned status;
    const char *content, *shown;
  } rows[] = {
      {"bytes=0-3", 206, "0123", "bytes 0-3/10"},
      {"bytes=7-", 206, "789", "bytes 7-9/10"},
      {"bytes=-2", 206, "89", "bytes 8-9/10"},
      {"bytes=-99", 206, "0123456789", "bytes 0-9/10"},
      {"bytes=9-99", 206, "9", "bytes 9-9/10"},
      {"bytes=10-", 416, "the file has 10 bytes", "bytes */10"},
      {"bytes=-0", 416, "the file has 10 bytes", "bytes */10"},
      {"bytes=18446744073709551615-", 416, "the file has 10 bytes", "bytes */10"},
      {"bytes=0-1,3-4", 200, "0123456789", ""},
      {"bytes=3-1", 200, "0123456789", ""},
      {"bytes=99999999999999999999-", 200, "0123456789", ""},
      {"bytes=-", 200, "0123456789", ""},
      {"bytes=a-b", 200, "0123456789", ""},
      {"lines=0-3", 200, "0123456789", ""},
  };
  for (const auto& row : rows) {
    const Response response = folder.ask("/app.js", {{"Range", row.range}});
    EXPECT_EQ(response.status, row.status) << row.range;
    EXPECT_EQ(content_of(response), row.content) << row.range;
    EXPECT_EQ(header(response, "Content-Range"), row.shown) << row.range;
  }
  EXPECT_EQ(folder.ask("/empty", {{"Range", "bytes=0-"}}).status, 416u);
  const std::string etag = header(folder.ask("/app.js"), "ETag");
  EXPECT_EQ(folder.ask("/app.js", {{"Range", "bytes=0-3"}, {"If-Range", etag}}).status, 206u);
  EXPECT_EQ(folder.ask("/app.js", {{"Range", "bytes=0-3"}, {"If-Range", "\"old\""}}).status, 200u);
}

TEST(Files, a_missing_folder_is_reported_by_name) {
  const auto files = Files::open("/nowhere/console", nullptr);
  ASSERT_FALSE(files);
  EXPECT_EQ(files.error().message, "cannot serve the folder /nowhere/console: No such file or directory");
}

}  // namespace
}  // namespace carve::http
