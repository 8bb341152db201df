#include "controller/api/bill_routes.h"

#include <fmt/ranges.h>

#include <map>

#include "controller/api/object_routes.h"
#include "controller/api/planning.h"
#include "controller/api/query.h"
#include "controller/objects/present_tariffs.h"
#include "core/utc.h"
#include "os/clock.h"

namespace carve::controller {
namespace {

using K = FailureKind;
using objects::Kind;

// Returns all tariffs, those of the submissions in place of the present ones.
Outcome<bill::Tariffs> tariffs_with(const Call& call, const std::vector<Submission>& submissions) {
  std::map<std::string, bill::Tariff> by_name;
  for (const auto& object : call.context.objects.list(Kind::tariff))
    by_name.insert_or_assign(object->key.name, stored_tariff(object->spec));
  for (const Submission& submission : submissions)
    if (submission.kind == Kind::tariff)
      by_name.insert_or_assign(submission.metadata.name, stored_tariff(submission.spec));
  std::vector<bill::Tariff> all;
  for (auto& [name, tariff] : by_name) all.push_back(std::move(tariff));
  return bill::Tariffs::from(std::move(all));
}

Outcome<bool> yes_or_no(const std::string& what, const std::string& word) {
  if (word == "true") return true;
  if (word == "false" || word.empty()) return false;
  return failure(K::invalid_argument, "{} '{}': it is true or false", what, word.substr(0, max_shown_bytes));
}

using Parameters = std::map<std::string, std::string>;

Outcome<BillQuery> bill_query(const Call& call, Parameters& given) {
  const UtcMonth month = month_of(call.context.views.now_ns());
  BillQuery out{.window = {.from = month.from_ns, .to = month.to_ns}};
  for (const auto& [name, end] : {std::pair{"from", &out.window.from}, {"to", &out.window.to}})
    if (!given[name].empty()) {
      const auto moment = parse_utc(name, given[name]);
      if (!moment) return tl::unexpected(moment.error());
      *end = *moment;
    }
  if (given["to"].empty() && !given["from"].empty()) out.window.to = month_of(out.window.from).to_ns;
  if (out.window.from >= out.window.to)
    return failure(K::invalid_argument,
                   "from {} is not before to {}; an invoice has the time from one to the other",
                   os::rfc3339(out.window.from, os::Decimals::milliseconds),
                   os::rfc3339(out.window.to, os::Decimals::milliseconds));
  if (const std::string& by = given["by"]; !by.empty()) {
    const auto known = parse<BillBy>(by);
    if (!known)
      return failure(K::invalid_argument, "by '{}': it is one of {}", by.substr(0, max_shown_bytes),
                     fmt::join(Words<BillBy>::words, ", "));
    out.by = *known;
  }
  for (const auto& [name, is] : {std::pair{"lines", &out.with_lines}, {"idle", &out.only_idle}}) {
    const auto word = yes_or_no(name, given[name]);
    if (!word) return tl::unexpected(word.error());
    *is = *word;
  }
  out.account = given["account"];
  out.may_see = [caller = call.caller](const UsageRow& row) {
    return caller.may_see(row.owner_uid, row.account);
  };
  return out;
}

http::Response answered(const Call& call, BillQuery query, BillForm form) {
  query.with_lines |= form == BillForm::csv;
  return call.context.views.bill(std::move(query), present_tariffs(call.context.objects), form);
}

}  // namespace

http::Response get_bill(const Call& call) {
  auto given = parse_query(call.request.query, {"from", "to", "by", "account", "lines", "idle", "format"});
  if (!given) return refuse(given.error());
  auto query = bill_query(call, *given);
  if (!query) return refuse(query.error());
  const std::string* accept = call.request.headers.find("Accept");
  const std::string& format = (*given)["format"];
  if (!format.empty() && format != "json" && format != "csv")
    return refuse(K::invalid_argument,
                  fmt::format("format '{}': it is json or csv", format.substr(0, max_shown_bytes)));
  const bool is_csv =
      format.empty() ? accept != nullptr && accept->find("text/csv") != std::string::npos : format == "csv";
  return answered(call, std::move(*query), is_csv ? BillForm::csv : BillForm::json);
}

http::Response get_bill_line(const Call& call) {
  auto given = parse_query(call.request.query, {"from", "to"});
  if (!given) return refuse(given.error());
  auto query = bill_query(call, *given);
  if (!query) return refuse(query.error());
  query->line = call.names[0];
  return answered(call, std::move(*query), BillForm::line);
}

std::optional<http::Response> refused_by_tariffs(const Call& call,
                                                 const std::vector<Submission>& submissions) {
  for (const Submission& submission : submissions) {
    if (submission.kind != Kind::tariff) continue;
    if (const auto valid = tariffs_with(call, submissions); !valid)
      return refuse(
          api::FieldErrors{{.field = "spec.from", .value = "", .sentence = valid.error().sentence}});
    return std::nullopt;
  }
  return std::nullopt;
}

http::Response delete_price(const Call& call) {
  const objects::KindText& kind = objects::text_of(call.kind);
  if (const auto allowed = check_operator(call, call.kind); !allowed) return refuse(allowed.error());
  const auto present = call.context.objects.find({call.kind, "default", call.names[0]});
  if (!present)
    return refuse(K::not_found,
                  fmt::format("there is no {} {}", kind.singular, call.names[0].substr(0, max_shown_bytes)));
  if (const auto is_expected = check_version(call, *present); !is_expected)
    return refuse(is_expected.error());
  if (const auto removed = call.context.objects.remove(present->key); !removed)
    return refuse(removed.error());
  return shown(call, *present);
}

}  // namespace carve::controller
