// Tests the form of objects for the editor, and the patch that a changed text becomes.
#include "cli/edit_form.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/object_output.h"
#include "wire/api/json_value.h"
#include "yaml/documents.h"

namespace carve::cli {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

api::Json json(const char* text) { return api::parse(text).value(); }

TEST(EditForm, leaves_out_what_the_controller_sets) {
  EXPECT_EQ(user_form(json(R"({"kind": "Service", "metadata": {"name": "a", "uid": "1", "ownerUid": 2,
    "generation": 3, "resourceVersion": "4", "createdAt": "x", "labels": {"uid": "mine"}},
    "spec": {"status": 1}, "status": {"phase": "Running"}})")),
            json(R"({"kind": "Service", "metadata": {"name": "a", "labels": {"uid": "mine"}},
    "spec": {"status": 1}})"));
  EXPECT_EQ(user_form(json(R"({"metadata": 5})")), json(R"({"metadata": 5})"));
}

TEST(EditForm, a_patch_changes_the_one_document_into_the_other) {
  for (const auto& [before, after, patch] :
       std::initializer_list<std::tuple<const char*, const char*, const char*>>{
           {R"({"a": 1, "b": {"c": 2}})", R"({"b": {"c": 2}, "a": 1})", "{}"},
           {R"({"a": 1, "b": {"c": 2, "d": 3}})", R"({"a": 1, "b": {"d": 4}})",
            R"({"b": {"c": null, "d": 4}})"},
           {R"({"a": [1, {"b": 2}]})", R"({"a": [1, {"b": 3}]})", R"({"a": [1, {"b": 3}]})"},
           {R"({"a": {"b": 1}})", R"({"a": 5})", R"({"a": 5})"},
           {R"({"a": 5})", R"({"a": {}})", R"({"a": {}})"},
           {R"({"a": {"b": 1}})", R"({"c": {"d": {}}})", R"({"a": null, "c": {"d": {}}})"}}) {
    EXPECT_EQ(merge_patch(json(before), json(after)), json(patch)) << before << after;
    api::Json patched = json(before);
    patched.merge_patch(json(patch));
    EXPECT_EQ(nlohmann::json(patched), nlohmann::json(json(after))) << "the order of keys has no meaning";
  }
}

TEST(EditForm, the_comment_at_the_top_is_not_part_of_the_document) {
  const std::string text = editor_text("service/a", "first\nsecond\x1b[2J", "kind: Service\n# mine\n");
  EXPECT_THAT(text, StartsWith("# Change service/a, "));
  EXPECT_THAT(text, HasSubstr("\n# first\n# second?[2J\n#\nkind: Service\n"));
  EXPECT_EQ(without_comment(text), "kind: Service\n# mine\n");
  EXPECT_EQ(without_comment("# only"), "");
  EXPECT_EQ(without_comment(""), "");
}

TEST(EditForm, reads_one_document_and_reports_why_another_is_not_one) {
  EXPECT_EQ(edited_document("a: 1\nb: {c: x}\n"), json(R"({"a": 1, "b": {"c": "x"}})"));
  EXPECT_THAT(edited_document("a: 1\n---\nb: 2\n").error(), HasSubstr("the file has 2 documents; keep one"));
  EXPECT_THAT(edited_document("a: [").error(), HasSubstr("line"));
  EXPECT_FALSE(edited_document("- a\n"));
}

TEST(YamlOutput, texts_with_several_lines_are_blocks_that_read_as_the_same_text) {
  const auto shown = [](const api::Json& value) { return yaml_of(api::Json{{"a", {{"b", value}}}}.dump()); };
  EXPECT_EQ(shown("set -e\n  run\n"), "a:\n  b: |\n    set -e\n      run\n");
  EXPECT_EQ(shown("one\n\ntwo"), "a:\n  b: |-\n    one\n\n    two\n");
  EXPECT_EQ(shown(api::Json::array({"x\ny", "z"})), "a:\n  b:\n    - |-\n      x\n      y\n    - z\n");
  for (const char* text : {"a\nb", "a\nb\n", "a\nb\n\n", "\na", " a\nb", "a\n b \n\nc", "a\n---\nb", "\ta\nb",
                           "a\r\nb", "a\n\x01",
                           "a\n\xc2\x85"
                           "b",
                           "a\n# b: c", "a\n", "\n", "a\n\n\n b"}) {
    const api::Json whole{{"k", text}, {"l", api::Json::array({text, {{"m", text}}})}};
    EXPECT_EQ(api::parse(yaml::json_of(yaml_of(whole.dump()))).value(), whole) << yaml_of(whole.dump());
  }
}

}  // namespace
}  // namespace carve::cli
