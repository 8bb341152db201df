#include "kubernetes/cli/changes.h"

#include <gtest/gtest.h>

namespace carve::kubernetes::cli {
namespace {

TEST(Changes, a_table_prints_only_rows_that_were_not_printed_before) {
  Changes changes;
  EXPECT_EQ(changes.since_before("NAME  USED\na     1\na     1\nb     2\n", Form::table),
            "NAME  USED\na     1\na     1\nb     2\n");
  EXPECT_EQ(changes.since_before("NAME  USED\na     1\na     1\nb     2\n", Form::table), "");
  EXPECT_EQ(changes.since_before("NAME  USED\na     1\nb     3\nc     1\n", Form::wide),
            "b     3\nc     1\n");
  EXPECT_EQ(changes.since_before("NAME  USED\na     1\na     1\nb     3\n", Form::table), "a     1\n")
      << "a second equal row is new";
}

TEST(Changes, a_changed_document_is_printed_as_a_whole) {
  Changes changes;
  EXPECT_EQ(changes.since_before("{}\n", Form::json), "{}\n");
  EXPECT_EQ(changes.since_before("{}\n", Form::json), "");
  EXPECT_EQ(changes.since_before("{\"a\":1}\n", Form::json), "{\"a\":1}\n");
  Changes yaml;
  EXPECT_EQ(yaml.since_before("a: 1\n", Form::yaml), "a: 1\n");
  EXPECT_EQ(yaml.since_before("a: 2\n", Form::yaml), "---\na: 2\n") << "documents of one stream";
}

TEST(Changes, report_whether_a_round_had_a_result) {
  Changes changes;
  EXPECT_FALSE(changes.take_has_result());
  changes.since_before("a\n", Form::table);
  EXPECT_TRUE(changes.take_has_result());
  EXPECT_FALSE(changes.take_has_result());
}

}  // namespace
}  // namespace carve::kubernetes::cli
