// `carve history`: the metrics of a slice or a device over time, from the controller.
#include "cli/history_view.h"
#include "cli/time_span.h"
#include "cli/verbs.h"
#include "core/utc.h"
#include "wire/api/percent.h"

namespace carve::cli {
namespace {

struct HistoryOptions {
  std::string object, metric, since = "1h", step, output = "table";
};

std::string target_of(const HistoryOptions& o) {
  const auto span = parse_time_span(o.since, 'h');
  const auto since_ns = std::chrono::nanoseconds(span ? *span : std::chrono::hours(1)).count();
  std::string out =
      fmt::format("/v1/history?object={}&from={}", api::percent_encoded(o.object),
                  api::percent_encoded(text_utc(static_cast<int64_t>(utc_now_ns()) - since_ns)));
  if (!o.metric.empty()) out += "&metric=" + api::percent_encoded(o.metric);
  if (!o.step.empty()) out += fmt::format("&step={}", parse_time_span(o.step)->count());
  return out;
}

}  // namespace

void add_history(CLI::App& app, Context& context) {
  CLI::App* verb = app.add_subcommand("history", "Show the metrics of a slice or a device over time");
  const auto o = std::make_shared<HistoryOptions>();
  verb->add_option("OBJECT", o->object, "slice/NAME, slice/NODE/NAME or device/NODE/INDEX")->required();
  verb->add_option("--metric", o->metric,
                   "Metrics, separated by commas, such as charged_bytes,quota_bytes [all]");
  verb->add_option("--since", o->since, "Duration until now, such as 90s, 10m, 2h or 7d")
      ->check(check_time_span)
      ->capture_default_str();
  verb->add_option("--step", o->step, "Time of one value, such as 5s, 1m or 1h [at most 720 values]")
      ->check(check_time_span);
  verb->add_option("-o,--output", o->output, "Output format")
      ->check(CLI::IsMember({"table", "csv", "json"}))
      ->capture_default_str();
  verb->footer(
      "  carve history slice/train\n  carve history device/vm/0 --metric power_milliwatts --since 1d");
  verb->callback([&context, o] {
    answered(context, context.controller().get<api::MetricHistory>(target_of(*o)), [&](const auto& history) {
      if (o->output == "json") return print_json(history);
      const std::string text = o->output == "csv" ? history_csv(history) : history_table(history);
      std::fwrite(text.data(), 1, text.size(), stdout);
    });
  });
}

}  // namespace carve::cli
