#include "cli/help.h"

#include <gmock/gmock.h>

#include "cli/suggestions.h"

namespace carve::cli {
namespace {

using testing::HasSubstr;

TEST(Help, an_option_shows_its_value_words_range_and_default) {
  CLI::App app("demo", "carve");
  app.formatter(std::make_shared<HelpFormatter>());
  app.require_subcommand(1);
  CLI::App* verb = app.add_subcommand("run", "Run a program");
  std::string output = "table", name, wait, part;
  unsigned devices = 1;
  std::vector<std::string> slices;
  verb->add_option("-o,--output", output, "Output format")
      ->check(CLI::IsMember({"table", "wide", "json"}))
      ->capture_default_str();
  verb->add_option("--devices", devices, "Number of devices [1]")->check(CLI::Range(1u, 16u));
  verb->add_option("--name", name, "The slice's name")->required();
  verb->add_option("--part", part, "Memory and share")->type_name("SIZE[:PERCENT]");
  verb->add_flag("--wait{forever}", wait, "Wait until the slice fits");
  verb->add_option("SLICE", slices, "The slices")->required();
  const std::string text = verb->help();
  EXPECT_THAT(text, HasSubstr("Run a program\n\nUsage: carve run [OPTIONS] SLICE...\n"));
  EXPECT_THAT(text, HasSubstr("  -o, --output OUTPUT         Output format: table, wide or json [table]\n"));
  EXPECT_THAT(text, HasSubstr("  --devices N                 Number of devices, 1 to 16 [1]\n"));
  EXPECT_THAT(text, HasSubstr("  --name NAME                 The slice's name (required)\n"));
  EXPECT_THAT(text, HasSubstr("  --part SIZE[:PERCENT]       Memory and share\n"));
  EXPECT_THAT(text, HasSubstr("  --wait[=TIME]               Wait until the slice fits\n"));
  EXPECT_THAT(text, HasSubstr("  SLICE...                    The slices\n"));
  EXPECT_THAT(app.help(), HasSubstr("Usage: carve VERB [OPTIONS]\n"));
}

TEST(Help, words_in_the_description_are_not_repeated) {
  CLI::App app("demo", "carve");
  app.formatter(std::make_shared<HelpFormatter>());
  std::string isolation;
  app.add_option("--isolation", isolation, "none: no limit; memory: only the quota [memory]")
      ->check(CLI::IsMember({"none", "memory"}));
  EXPECT_THAT(app.help(), HasSubstr("none: no limit; memory: only the quota [memory]\n"));
}

TEST(Help, long_texts_continue_in_their_column) {
  EXPECT_EQ(wrapped("one two three four", 9, 2), "one two\n  three\n  four");
  EXPECT_EQ(wrapped("abcdefghijkl m", 5, 1), "abcdefghijkl\n m") << "a word is never cut";
  EXPECT_EQ(wrapped("", 5, 1), "");
}

TEST(Suggestions, the_only_nearest_word_is_suggested) {
  const std::vector<std::string> verbs = {"cancel", "stop", "show", "set", "get", "describe", "devices"};
  EXPECT_EQ(nearest("cancle", verbs), "cancel") << "exchanged letters are one error";
  EXPECT_EQ(nearest("stpo", verbs), "stop");
  EXPECT_EQ(nearest("descrbe", verbs), "describe");
  EXPECT_EQ(nearest("devicse", verbs), "devices");
  EXPECT_EQ(nearest("xet", verbs), "") << "set and get are equally near";
  EXPECT_EQ(nearest("sow", verbs), "show");
  EXPECT_EQ(nearest("frobnicate", verbs), "");
  EXPECT_EQ(nearest("", verbs), "");
  EXPECT_EQ(nearest("x", {}), "");
}

TEST(Suggestions, words_of_other_tools_are_answered_with_those_of_carve) {
  EXPECT_EQ(equivalent_of("nodes"), "carve get nodes");
  EXPECT_THAT(std::string(equivalent_of("--gpus")), HasSubstr("--devices N"));
  EXPECT_EQ(equivalent_of("frobnicate"), "");
}

}  // namespace
}  // namespace carve::cli
