// `carve limit set|ls|rm`: what the slices of a user or an account may hold together on this node.
#include <charconv>

#include "base/bytes.h"
#include "base/decimal.h"
#include "base/share.h"
#include "cli/verbs.h"
#include "os/user.h"
#include "wire/api/limit.h"

namespace carve::cli {
namespace {

constexpr const char* unlimited_word = "none";

struct LimitOptions {
  std::string user, account, memory, compute, slices, devices;
};

template <class T>
using Parsed = Result<T, std::string>;

// Sets one amount of the change from an option: a value, or "none" for no limit. `parse` returns the value or a
// message.
template <class T, class Parse>
Parsed<void> set_amount(const std::string& word, const char* option, const char* name,
                        std::optional<T>& amount, api::LimitChange& change, Parse parse) {
  if (word.empty()) return {};
  if (word == unlimited_word) {
    change.unlimited.push_back(name);
    return {};
  }
  auto value = parse(word);
  if (!value) return tl::unexpected(fmt::format("{} '{}' {}", option, word, value.error().message));
  amount = *value;
  return {};
}

Result<uint32_t> parse_count(const std::string& word) {
  uint32_t count = 0;
  const char* const end = word.data() + word.size();
  const auto [at, error] = std::from_chars(word.data(), end, count);
  if (error != std::errc() || at != end) return failed("must be a number, or none");
  return count;
}

// Parses a share of all devices together, which may be above 100 %.
Result<Share> parse_shares(const std::string& word) {
  constexpr uint32_t max_percent = 100 * 256;
  const auto number = leading_decimal(word);
  if (!number || word.substr(number->length) != "%" || number->decimals > 2)
    return failed("must be a percentage, such as 150%, or none");
  uint64_t points = number->digits;
  for (unsigned i = number->decimals; i < 2 && points <= max_percent * 100; ++i) points *= 10;
  if (points > uint64_t{max_percent} * 100) return failed("is too large, or not a number");
  return Share{static_cast<uint32_t>(points)};
}

// Sets the user or the account of the limit.
Parsed<void> set_holder(const LimitOptions& options, api::Limit& limit) {
  if (options.user.empty() == options.account.empty())
    return tl::unexpected(std::string("limit: give either USER or --account NAME"));
  limit.account = options.account;
  limit.user = options.user;
  if (options.user.empty() || options.user == api::every_user) return {};
  limit.uid = os::user_id(options.user);
  if (limit.uid) return {};
  const auto uid = parse_count(options.user);
  if (!uid) return tl::unexpected(fmt::format("there is no user '{}'", harmless(options.user)));
  limit.uid = *uid;
  limit.user = os::user_name(*uid);
  return {};
}

Parsed<api::LimitChange> to_change(const LimitOptions& options) {
  api::LimitChange out;
  if (const auto good = set_holder(options, out.limit); !good) return tl::unexpected(good.error());
  const Parsed<void> amounts[] = {
      set_amount(options.memory, "--memory", "memory", out.limit.memory, out,
                 [](const std::string& word) { return parse_bytes(word); }),
      set_amount(options.compute, "--compute", "share", out.limit.share, out, parse_shares),
      set_amount(options.slices, "--slices", "slices", out.limit.slices, out, parse_count),
      set_amount(options.devices, "--devices", "devices", out.limit.devices, out, parse_count)};
  for (const auto& amount : amounts)
    if (!amount) return tl::unexpected(amount.error());
  return out;
}

std::string holder_of(const api::Limit& limit) {
  if (!limit.account.empty()) return "account " + harmless(limit.account);
  return harmless(limit.user);
}

// Returns "12 GiB / 16 GiB": what is held, and the limit.
template <class T, class Text>
std::string cell(const std::optional<T>& limit, const std::optional<T>& held, Text text_of) {
  const std::string most = limit ? text_of(*limit) : "-";
  return held ? fmt::format("{} / {}", text_of(*held), most) : most;
}

void add_holder(CLI::App* verb, LimitOptions& options) {
  verb->add_option("USER", options.user,
                   "A user's name or uid, or '*' for every user without a limit of its own");
  verb->add_option("--account", options.account, "An account, whose users share the limit")
      ->type_name("NAME");
}

void add_limit_set(CLI::App* limit, Context& context) {
  CLI::App* verb =
      limit->add_subcommand("set", "Set the limit of a user or an account; other amounts stay as they are");
  auto options = std::make_shared<LimitOptions>();
  add_holder(verb, *options);
  verb->add_option("--memory", options->memory, "Memory of all slices together, or none")->type_name("SIZE");
  verb->add_option("--compute", options->compute,
                   "Compute shares of all slices together, such as 150%, or none")
      ->type_name("SHARE");
  verb->add_option("--slices", options->slices, "Number of slices at the same time, or none")
      ->type_name("COUNT");
  verb->add_option("--devices", options->devices, "Number of devices with slices at the same time, or none")
      ->type_name("COUNT");
  add_output(verb, context);
  verb->footer(
      "A user's own limit replaces the limit of '*' completely. Slices that exist keep what they hold.\n"
      "  carve limit set anna --memory 16GiB --slices 4\n"
      "  carve limit set '*' --memory 8GiB");
  verb->callback([&context, options] {
    if (options->memory.empty() && options->compute.empty() && options->slices.empty() &&
        options->devices.empty()) {
      context.refuse("limit set: give at least one of --memory, --compute, --slices and --devices");
      return;
    }
    const auto change = to_change(*options);
    if (!change) {
      context.refuse(change.error());
      return;
    }
    answered(context, context.agent().change_limit(*change), [&](const api::Limit& changed) {
      if (context.json()) return print_json(changed);
      fmt::print("{}", limits_table({.items = {{changed, {}}}}));
    });
  });
}

void add_limit_list(CLI::App* limit, Context& context) {
  CLI::App* verb = limit->add_subcommand(
      "ls", "List your limits, or all limits if you are an operator; each cell is what is held / the limit");
  add_output(verb, context);
  verb->callback([&context] {
    answered(context, context.agent().limits(), [&](const api::LimitList& list) {
      if (context.json()) return print_json(list);
      fmt::print("{}", limits_table(list));
    });
  });
}

void add_limit_remove(CLI::App* limit, Context& context) {
  CLI::App* verb = limit->add_subcommand("rm", "Remove the limit of a user or an account");
  auto options = std::make_shared<LimitOptions>();
  add_holder(verb, *options);
  verb->footer("  carve limit rm anna");
  verb->callback([&context, options] {
    const auto change = to_change(*options);
    if (!change) {
      context.refuse(change.error());
      return;
    }
    const api::Limit& limit = change->limit;
    const std::string key = !limit.account.empty() ? "account:" + limit.account
                            : limit.uid            ? fmt::format("user:{}", *limit.uid)
                                                   : "user:" + limit.user;
    answered(context, context.agent().remove_limit(key),
             [&](const api::Limit& removed) { fmt::print("{}\n", holder_of(removed)); });
  });
}

}  // namespace

std::string limits_table(const api::LimitList& list) {
  std::vector<std::vector<std::string>> rows;
  const auto memory = [](Bytes bytes) { return std::string(text(bytes).c_str()); };
  const auto share = [](Share points) { return std::string(text(points)); };
  const auto count = [](uint32_t number) { return std::to_string(number); };
  for (const api::LimitView& view : list.items) {
    const api::Limit& limit = view.limit;
    const auto& held = view.held;
    rows.push_back({holder_of(limit),
                    cell(limit.memory, held ? std::optional(held->memory) : std::nullopt, memory),
                    cell(limit.share, held ? std::optional(held->share) : std::nullopt, share),
                    cell(limit.slices, held ? std::optional(held->slices) : std::nullopt, count),
                    cell(limit.devices, held ? std::optional(held->devices) : std::nullopt, count)});
  }
  return table({"LIMIT OF", "MEMORY", "COMPUTE", "SLICES", "DEVICES"}, rows);
}

void add_limit(CLI::App& app, Context& context) {
  CLI::App* verb =
      app.add_subcommand("limit", "Show and set how much each user and account may hold on this node");
  verb->require_subcommand(1);
  add_limit_set(verb, context);
  add_limit_list(verb, context);
  add_limit_remove(verb, context);
}

}  // namespace carve::cli
