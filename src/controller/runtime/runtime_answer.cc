#include "controller/runtime/runtime_answer.h"

#include <algorithm>
#include <charconv>

namespace carve::controller {
namespace {

// SRV_ADMF_* in HAProxy's server-t.h: forced, inherited, by configuration, by DNS, by resolution.
constexpr uint64_t maintenance_bits = 0x01 | 0x02 | 0x04 | 0x20 | 0x40;
constexpr uint64_t drain_bits = 0x08 | 0x10;

// Removes the next line from the text and returns it without its end.
std::string_view next_line(std::string_view& text) {
  const size_t end = text.find('\n');
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  return line;
}

std::vector<std::string_view> words_of(std::string_view line, char separator) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at <= line.size();) {
    const size_t end = std::min(line.find(separator, at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end + 1;
  }
  return words;
}

// Returns the words of a line, which are separated by spaces and tabs.
std::vector<std::string_view> blank_separated(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; (at = line.find_first_not_of(" \t", at)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t", at), line.size());
    words.push_back(line.substr(at, end - at));
    at = end;
  }
  return words;
}

template <class Number>
std::optional<Number> read_number(std::string_view text) {
  Number number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// The columns of one line. Records the first invalid column.
class Columns {
 public:
  explicit Columns(std::vector<std::string_view> names) : names_(std::move(names)) {}

  void read(std::vector<std::string_view> values) { values_ = std::move(values); }
  std::string_view text(std::string_view name) {
    const auto found = std::ranges::find(names_, name);
    const auto at = static_cast<size_t>(found - names_.begin());
    if (found != names_.end() && at < values_.size()) return values_[at];
    if (wrong_.empty()) wrong_ = name;
    return {};
  }
  uint64_t number(std::string_view name) {
    const std::string_view value = text(name);
    if (value.empty()) return 0;
    const auto number = read_number<uint64_t>(value);
    if (!number && wrong_.empty()) wrong_ = name;
    return number.value_or(0);
  }
  const std::string& wrong() const { return wrong_; }

 private:
  std::vector<std::string_view> names_, values_;
  std::string wrong_;
};

tl::unexpected<Failure> unreadable(std::string_view command, std::string_view what) {
  return failure(FailureKind::unavailable,
                 "cannot read HAProxy's response to '{}': {}; the supported version is 2.6", command, what);
}

tl::unexpected<Failure> wrong_column(std::string_view command, const std::string& column) {
  return unreadable(command, fmt::format("the column {} is missing or cannot be read", column));
}

// Parses "0 [failed: 0]", which is three words in the master's line.
bool read_reloads(const std::vector<std::string_view>& words, ProxyProcesses& out) {
  if (words.size() < 5 || words[3] != "[failed:" || !words[4].ends_with(']')) return false;
  const auto reloads = read_number<uint64_t>(words[2]);
  const auto failed = read_number<uint64_t>(words[4].substr(0, words[4].size() - 1));
  if (!reloads || !failed) return false;
  out.reloads = *reloads;
  out.failed_reloads = *failed;
  return true;
}

}  // namespace

Outcome<ProxyProcesses> read_processes(std::string_view answer) {
  ProxyProcesses out;
  bool old = false;
  while (!answer.empty()) {
    const std::string_view line = next_line(answer);
    if (line.starts_with("# old workers")) old = true;
    if (line.empty() || line.starts_with('#')) continue;
    const auto words = blank_separated(line);
    if (words.size() < 3) return unreadable("show proc", "a line has fewer than three words");
    const auto pid = read_number<int>(words[0]);
    if (!pid || *pid <= 0) return unreadable("show proc", "a line does not begin with a process id");
    if (words[1] == "master") {
      out.master = *pid;
      if (!read_reloads(words, out))
        return unreadable("show proc", "the master's line has an unexpected format");
    } else if (words[1] == "worker" && old) {
      out.old_workers.push_back(*pid);
    } else if (words[1] == "worker" && out.worker == 0) {
      out.worker = *pid;
    }
  }
  if (out.master == 0) return unreadable("show proc", "no line names the master");
  return out;
}

Outcome<std::vector<StatRow>> read_stat(std::string_view answer) {
  std::string_view header = next_line(answer);
  if (!header.starts_with("# ")) return unreadable("show stat", "the first line has no column names");
  header.remove_prefix(2);
  Columns columns(words_of(header, ','));
  std::vector<StatRow> rows;
  while (!answer.empty()) {
    const std::string_view line = next_line(answer);
    if (line.empty()) continue;
    columns.read(words_of(line, ','));
    StatRow row{
        .proxy = std::string(columns.text("pxname")),
        .name = std::string(columns.text("svname")),
        .queued = columns.number("qcur"),
        .sessions = columns.number("scur"),
        .requests = columns.number("req_tot"),
        .responses = {columns.number("hrsp_1xx"), columns.number("hrsp_2xx"), columns.number("hrsp_3xx"),
                      columns.number("hrsp_4xx"), columns.number("hrsp_5xx"), columns.number("hrsp_other")},
        .mean_response_ms = columns.number("rtime")};
    const uint64_t kind = columns.number("type");
    if (!columns.wrong().empty()) return wrong_column("show stat", columns.wrong());
    if (kind > static_cast<uint64_t>(StatRow::Kind::listener)) return wrong_column("show stat", "type");
    row.kind = static_cast<StatRow::Kind>(kind);
    rows.push_back(std::move(row));
  }
  return rows;
}

bool is_in_maintenance(const ServerRow& row) { return (row.administrative & maintenance_bits) != 0; }
bool is_drained(const ServerRow& row) { return (row.administrative & drain_bits) != 0; }

Outcome<std::vector<ServerRow>> read_servers(std::string_view answer) {
  if (next_line(answer) != "1") return unreadable("show servers state", "its version is not 1");
  std::string_view header = next_line(answer);
  if (!header.starts_with("# "))
    return unreadable("show servers state", "the second line has no column names");
  header.remove_prefix(2);
  Columns columns(blank_separated(header));
  std::vector<ServerRow> rows;
  while (!answer.empty()) {
    const std::string_view line = next_line(answer);
    if (line.empty()) continue;
    columns.read(blank_separated(line));
    rows.push_back({.proxy = std::string(columns.text("be_name")),
                    .server = std::string(columns.text("srv_name")),
                    .administrative = columns.number("srv_admin_state"),
                    .weight = columns.number("srv_uweight")});
    if (!columns.wrong().empty()) return wrong_column("show servers state", columns.wrong());
  }
  return rows;
}

// A line is "0x55cd3aea7d10: key=default:demo use=0 exp=0 gpt0=208 gpc0=3 gpc1=0 ...".
Outcome<std::vector<LatencyRow>> read_latency(std::string_view answer) {
  std::vector<LatencyRow> rows;
  while (!answer.empty()) {
    const std::string_view line = next_line(answer);
    if (line.empty() || line.starts_with('#') || !line.starts_with("0x")) continue;
    LatencyRow row;
    size_t counters = 0;
    for (const std::string_view word : blank_separated(line)) {
      const size_t equals = word.find('=');
      if (equals == std::string_view::npos) continue;
      const std::string_view name = word.substr(0, equals), value = word.substr(equals + 1);
      if (name == "key") row.proxy = std::string(value);
      if (!name.starts_with("gpc") && name != "gpt0") continue;
      const auto number = read_number<uint64_t>(value);
      if (!number) return wrong_column("show table", std::string(name));
      if (name == "gpt0") {
        row.sum_ms = *number;
        continue;
      }
      const auto index = read_number<size_t>(name.substr(3));
      if (!index || *index >= row.counts.size()) return wrong_column("show table", std::string(name));
      row.counts[*index] = *number;
      ++counters;
    }
    if (row.proxy.empty() || counters != row.counts.size())
      return unreadable("show table", "an entry lacks its key or a counter");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::optional<std::string_view> read_info(std::string_view answer, std::string_view name) {
  while (!answer.empty()) {
    const std::string_view line = next_line(answer);
    if (line.size() >= name.size() + 2 && line.starts_with(name) && line.substr(name.size(), 2) == ": ")
      return line.substr(name.size() + 2);
  }
  return std::nullopt;
}

}  // namespace carve::controller
