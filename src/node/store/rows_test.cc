#include "node/store/rows.h"

#include <gmock/gmock.h>

#include <filesystem>

#include "ledger/usage_record.h"
#include "wire/api/json.h"

namespace carve::node::rows {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

struct Price {
  Bytes unit;
  std::optional<std::string> currency;
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
  std::vector<uint64_t> parts;  // A table of its own.
  std::map<std::string, std::string> labels;
  int64_t change = 0;
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
const sqlite::Schema schema{"store", "--state", 1, script.c_str()};

TEST(Rows, have_a_column_for_each_field_and_none_for_lists) {
  EXPECT_THAT(columns<Row>(), ElementsAre("\"id\"", "\"paid\"", "\"name\"", "\"policy\"", "\"device\"",
                                          "\"share_bp\"", "\"price_unit_bytes\"", "\"price_currency\"",
                                          "\"discount_unit_bytes\"", "\"discount_currency\"", "\"change\""));
}

TEST(Rows, come_back_as_they_were_written) {
  const File file;
  auto opened = sqlite::Database::open(file.path / "a.db", schema, 1);
  ASSERT_TRUE(opened) << opened.error().sentence;
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
      sqlite::Statement s(db, "INSERT INTO t VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
      bind(s, row);
      return s.finish();
    });
    ASSERT_TRUE(kept) << kept.error().sentence;
    auto s = opened->database.statement("SELECT * FROM t");
    ASSERT_TRUE(s.row());
    Row again;
    int column = 0;
    std::string wrong;
    ASSERT_TRUE(read(s, column, again, wrong)) << wrong;
    EXPECT_EQ(column, 11);
    EXPECT_EQ(api::write(again), api::write(row));
  }
}

TEST(Rows, an_unknown_word_is_refused_by_name) {
  const File file;
  auto opened = sqlite::Database::open(file.path / "a.db", schema, 1);
  ASSERT_TRUE(opened->database.execute("INSERT INTO t (policy, device) VALUES ('newest', 'GPU')"));
  auto s = opened->database.statement("SELECT * FROM t");
  ASSERT_TRUE(s.row());
  Row row;
  int column = 0;
  std::string wrong;
  EXPECT_FALSE(read(s, column, row, wrong));
  EXPECT_EQ(wrong, "newest");
}

// A field that is added to a record needs no second place: its document, its file and its table have it.
TEST(Rows, a_new_field_is_in_all_forms) {
  struct Extended {
    ledger::UsageRecord record;
    std::string cost_center;
    Bytes extra;
  };
  Extended e;
  e.record.slice.name = "a";
  e.cost_center = "c7";
  EXPECT_THAT(columns<Extended>(), Contains("\"cost_center\""));
  EXPECT_THAT(columns<Extended>(), Contains("\"extra_bytes\""));
  EXPECT_THAT(columns<Extended>(), Contains("\"record_slice_name\""));
  const std::string document = api::write(e);
  EXPECT_THAT(document, HasSubstr(R"("cost_center":"c7")"));
  const auto again = api::read<Extended>(document, api::Reading::strict);
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again->cost_center, "c7");
  EXPECT_EQ(again->record, e.record);
}

}  // namespace
}  // namespace carve::node::rows
