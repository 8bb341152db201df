#include "sqlite/rows.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "core/slice.h"

namespace carve::sqlite::rows {
namespace {

using testing::ElementsAre;

struct Price {
  Bytes unit;
  std::optional<std::string> currency;
  friend bool operator==(const Price&, const Price&) = default;
};
struct Row {
  uint64_t id = 0;
  bool paid = false;
  std::string name;
  Policy policy = Policy::fixed_share;
  Uuid device;
  Share share;
  Price price;
  std::optional<Price> discount;
  std::vector<uint64_t> parts;  // Stored in its own table.
  std::map<std::string, std::string> labels;
  int64_t change = 0;
  friend bool operator==(const Row&, const Row&) = default;
};

struct File {
  File() {
    char name[] = "/tmp/carve-rows-XXXXXX";
    path = mkdtemp(name);
  }
  ~File() { std::filesystem::remove_all(path); }
  std::filesystem::path path;
};

const std::string script = fmt::format("CREATE TABLE t ({}) STRICT;", declarations<Row>());
const Schema schema{"store", "--state", 1, script.c_str()};

TEST(Rows, have_a_column_for_each_field_and_none_for_lists) {
  EXPECT_THAT(columns<Row>(), ElementsAre("\"id\"", "\"paid\"", "\"name\"", "\"policy\"", "\"device\"",
                                          "\"share_bp\"", "\"price_unit_bytes\"", "\"price_currency\"",
                                          "\"discount_unit_bytes\"", "\"discount_currency\"", "\"change\""));
}

TEST(Rows, come_back_as_they_were_written) {
  const File file;
  auto opened = Database::open(file.path / "a.db", schema, 1);
  ASSERT_TRUE(opened) << opened.error().message;
  Row row{.id = 7,
          .paid = true,
          .name = "it's \"quoted\"",
          .policy = Policy::native_burst_share,
          .share = {1250},
          .price = {.unit = 3_GiB, .currency = "EUR"},
          .change = -5};
  row.device.bytes[15] = 9;
  for (const bool discount : {false, true}) {
    if (discount) row.discount = Price{.unit = 1_MiB, .currency = std::nullopt};
    ASSERT_TRUE(opened->database.execute("DELETE FROM t"));
    const auto kept = opened->database.transact([&](sqlite3* db) {
      Statement s(db, "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
      bind(s, row);
      return s.finish();
    });
    ASSERT_TRUE(kept) << kept.error().message;
    auto s = opened->database.statement("SELECT * FROM t");
    ASSERT_TRUE(s.row());
    Row again;
    int column = 0;
    std::string wrong;
    ASSERT_TRUE(read(s, column, again, wrong)) << wrong;
    EXPECT_EQ(column, 11);
    EXPECT_EQ(again, row);
  }
}

TEST(Rows, an_unknown_word_is_rejected_by_name) {
  const File file;
  auto opened = Database::open(file.path / "a.db", schema, 1);
  ASSERT_TRUE(opened->database.execute("INSERT INTO t (policy, device) VALUES ('newest', 'GPU')"));
  auto s = opened->database.statement("SELECT * FROM t");
  ASSERT_TRUE(s.row());
  Row row;
  int column = 0;
  std::string wrong;
  EXPECT_FALSE(read(s, column, row, wrong));
  EXPECT_EQ(wrong, "newest");
}

}  // namespace
}  // namespace carve::sqlite::rows
