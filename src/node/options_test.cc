#include "node/options.h"

#include <gmock/gmock.h>

#include <sstream>

#include "node/option_table.h"

namespace carve::node {
namespace {

using testing::HasSubstr;
using testing::Not;

Outcome<Options> parse(std::vector<const char*> words, const Surroundings& s) {
  words.insert(words.begin(), "carved");
  return parse_options(static_cast<int>(words.size()), const_cast<char**>(words.data()), s);
}

const Surroundings root{0, "/root", "", "", "/here"};
const Surroundings user{1000, "/home/u", "/run/user/1000", "", "/here"};

TEST(Options, default_to_paths_of_each_users_own) {
  EXPECT_EQ(parse({}, root)->state, "/var/lib/carve");
  EXPECT_EQ(parse({}, root)->socket, "/run/carve/carved.sock");
  EXPECT_EQ(parse({}, user)->state, "/home/u/.local/state/carve");
  EXPECT_EQ(parse({}, user)->socket, "/run/user/1000/carve/carved.sock");
  Surroundings bare = user;
  bare.xdg_runtime_dir = "";
  bare.xdg_state_home = "/st";
  EXPECT_EQ(parse({}, bare)->socket, "/tmp/carve-1000/carved.sock");
  EXPECT_EQ(parse({}, bare)->state, "/st/carve");
}

TEST(Options, are_accepted_in_both_forms_and_paths_become_absolute) {
  const auto o = parse({"--sim", "a10x2", "--state=s", "--socket", "/x/y", "--strategy", "spread",
                        "--reserve=1GiB", "--context-charge", "reserve"},
                       user);
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->sim, "a10x2");
  EXPECT_EQ(o->state, "/here/s");
  EXPECT_EQ(o->socket, "/x/y");
  EXPECT_EQ(o->strategy, Strategy::spread);
  EXPECT_EQ(*o->reserve, 1_GiB);
  EXPECT_FALSE(o->contexts_in_slice);
}

TEST(Options, set_the_policy_by_an_option_or_by_a_label) {
  EXPECT_FALSE(parse({}, user)->policy);
  EXPECT_EQ(parse({"--policy", "native-burst-share"}, user)->policy, Policy::native_burst_share);
  const auto o = parse(
      {"--label", "vke.volcengine.com/mgpu-compute-policy=guaranteed-burst-share", "--label=zone=a"}, user);
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->policy, Policy::guaranteed_burst_share);
  EXPECT_EQ(o->labels.at("zone"), "a");
  EXPECT_TRUE(
      parse({"--policy=fixed-share", "--label=vke.volcengine.com/mgpu-compute-policy=fixed-share"}, user));
}

TEST(Options, open_metrics_on_loopback_and_elsewhere_only_on_request) {
  const auto o = parse({"--metrics-listen", "[::1]:9400"}, user);
  ASSERT_TRUE(o) << o.error().message;
  EXPECT_EQ(o->metrics->host, "::1");
  EXPECT_EQ(o->metrics->port, 9400);
  EXPECT_EQ(parse({"--metrics-listen=127.0.0.1:0"}, user)->metrics->host, "127.0.0.1");
  EXPECT_EQ(parse({"--metrics-listen", "0.0.0.0:9400", "--metrics-listen-any"}, user)->metrics->host,
            "0.0.0.0");
}

TEST(Options, are_rejected_with_a_message_if_invalid) {
  const struct {
    std::vector<const char*> words;
    const char* message;
  } rows[] = {{{"--nonsense"}, "unknown option --nonsense"},
              {{"x"}, "unknown option x"},
              {{"--state"}, "--state needs a value"},
              {{"--state="}, "--state needs a value"},
              {{"--strategy", "best"}, "binpack or spread"},
              {{"--strategy", "fgd"}, "--strategy 'fgd' is not a strategy; use binpack or spread"},
              {{"--guard", "mps"}, "--guard 'mps' is not a level; use auto, kernel or library"},
              {{"--reserve", "5"}, "--reserve '5'"},
              {{"--context-charge", "me"}, "slice or reserve"},
              {{"--policy", "fair"}, "fixed-share, guaranteed-burst-share or native-burst-share"},
              {{"--label", "vke.volcengine.com/mgpu-compute-policy=Fixed"}, "fixed-share, guaranteed"},
              {{"--label=vke.volcengine.com/mgpu-compute-policy=fixed-share", "--policy=native-burst-share"},
               "another option sets the policy fixed-share"},
              {{"--label", "zone"}, "KEY=VALUE"},
              {{"--label", "zone=a", "--label", "zone=b"}, "zone already has the value a"},
              {{"--best-effort", "maybe"}, "allow or refuse"},
              {{"--policy-per-slice=yes"}, "takes no value"},
              {{"--metrics-listen", "127.0.0.1"}, "an address and a port"},
              {{"--metrics-listen", "127.0.0.1:66000"}, "an address and a port"},
              {{"--metrics-listen", "localhost:9400"}, "an address and a port"},
              {{"--metrics-listen", "127.x:9400"}, "an address and a port"},
              {{"--metrics-listen", "0.0.0.0:9400"}, "only loopback addresses are allowed"},
              {{"--metrics-listen-any"}, "requires --metrics-listen"}};
  for (const auto& row : rows) {
    const auto o = parse(row.words, user);
    ASSERT_FALSE(o) << row.message;
    EXPECT_THAT(o.error().message, HasSubstr(row.message));
    EXPECT_EQ(o.error().kind, FailureKind::invalid_argument);
  }
}

TEST(Options, of_a_hostile_command_line_are_rejected_with_one_line) {
  const std::string long_word(5000, 'x');
  const struct {
    std::vector<const char*> words;
    const char* message;
  } rows[] = {
      {{"--state", ""}, "--state needs a value; carved --help explains it"},
      {{"--state=", "--sim", "a10x1"}, "--state needs a value"},
      {{"--sim", "a10x1", "--state"}, "--state needs a value"},
      {{"--policy-per-slice="}, "--policy-per-slice takes no value"},
      {{"--policy-per-slice=no"}, "--policy-per-slice takes no value; remove '=no'"},
      {{"--state", "a", "--state=b"}, "--state 'b': --state is already set to 'a'; give it only once"},
      {{"--strategy=spread", "--strategy=binpack"}, "--strategy is already set to 'spread'"},
      {{"--reserve", "99999999999999999999GiB"}, "--reserve '99999999999999999999GiB'"},
      {{"--metrics-listen", "127.0.0.1:99999999999999999999"}, "an address and a port"},
      {{"--state", "/a\nb"}, "--state '/a?b' has a control character; use printable characters"},
      {{"--strategy", "spread\n"}, "--strategy 'spread?'"},
      {{"--x\nerror: y"}, "unknown option --x?error: y; carved --help lists the options"},
      {{"--strategy", long_word.c_str()}, "is not a strategy; use binpack or spread"},
      {{"--strategies"}, "unknown option --strategies"},
      {{"--strat", "spread"}, "unknown option --strat;"},
      {{"-s", "x"}, "unknown option -s;"},
      {{"-x1"}, "unknown option -x1;"},
      {{"--", "x"}, "unknown option"},
      {{"--=x"}, "unknown option --=x;"},
      {{"-"}, "unknown option -;"},
      {{""}, "unknown option ;"},
      {{"--label", "a=b", "c=d"}, "unknown option c=d"},
      {{"--policy", "fixed-share", "--label", "vke.volcengine.com/mgpu-compute-policy=native-burst-share"},
       "another option sets the policy"},
      {{"--log-level", "loud"}, "--log-level 'loud' is not a level; use error, warning, info or debug"},
      {{"--completion", "csh"}, "--completion 'csh' is not a shell with completion; use bash"},
  };
  for (const auto& row : rows) {
    const auto o = parse(row.words, user);
    ASSERT_FALSE(o) << row.message;
    EXPECT_THAT(o.error().message, HasSubstr(row.message));
    EXPECT_THAT(o.error().message, Not(HasSubstr("\n")));
    EXPECT_LE(o.error().message.size(), 300u);
    EXPECT_EQ(o.error().kind, FailureKind::invalid_argument);
  }
}

TEST(Options, may_be_repeated_with_the_same_value) {
  EXPECT_EQ(parse({"--sim", "a10x2", "--sim=a10x2"}, user)->sim, "a10x2");
  EXPECT_TRUE(parse({"--overcommit-compute", "--overcommit-compute"}, user)->overcommit_compute);
  EXPECT_EQ(parse({"--label=a=1", "--label", "b=2", "--label=b=2"}, user)->labels.size(), 2u);
}

TEST(Options, that_start_no_agent_take_precedence) {
  EXPECT_EQ(parse({"--state", "s", "-h", "--nonsense"}, user)->mode, Options::Mode::help);
  EXPECT_EQ(parse({"--version", "--strategy", "x"}, user)->mode, Options::Mode::version);
  EXPECT_EQ(parse({"--completion", "bash"}, user)->mode, Options::Mode::completion);
}

TEST(Options, are_listed_in_the_help_and_in_the_completion) {
  for (const OptionRow& row : option_rows) {
    EXPECT_THAT(help_text(), HasSubstr(row.takes_value() ? fmt::format("{} {} ", row.name, row.value)
                                                         : fmt::format("{} ", row.name)));
    EXPECT_THAT(completion_script(), HasSubstr(fmt::format("{} ", row.name)));
    for (const std::string_view word : row.words) {
      EXPECT_TRUE(parse({row.name, std::string(word).c_str()}, user)) << row.name << " " << word;
      EXPECT_THAT(help_text(), HasSubstr(word));
    }
  }
  std::istringstream lines(help_text());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 120u) << line;
}

}  // namespace
}  // namespace carve::node
