// A usage record is declared once, and its fields appear in the table, the file and the document.
#include <gmock/gmock.h>

#include "ledger/usage_record.h"
#include "sqlite/rows.h"
#include "wire/api/json.h"

namespace carve::node {
namespace {

using sqlite::rows::columns;
using testing::Contains;
using testing::HasSubstr;

// A new field of a record needs no other change to appear in the document, the file and the table.
TEST(RecordForms, contain_each_field_that_is_added) {
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
}  // namespace carve::node
