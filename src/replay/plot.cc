#include "replay/plot.h"

#include <algorithm>

namespace carve::replay {
namespace {

constexpr unsigned columns = 3;
constexpr double width = 320;  // Of a panel, in pixels, with its margins.
constexpr double height = 280;
constexpr double left = 46;
constexpr double right = 12;
constexpr double top = 34;
constexpr double bottom = 40;
constexpr unsigned from = 70;  // Percent, on both axes.
constexpr unsigned highest = 100;

// Okabe and Ito's palette: told apart by the colour-blind too.
constexpr std::string_view colours[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                        "#e69f00", "#56b4e9", "#000000"};

double x_of(double arrived) {
  return left + (arrived - from) * (width - left - right) / (curve_points - 1 - from);
}
double y_of(double allocated) {
  return height - bottom - (allocated - from) * (height - top - bottom) / (highest - from);
}

// Names come from files: what XML would read as markup is not printed as such.
std::string escaped(std::string_view name) {
  std::string out;
  for (const char c : name) switch (c) {
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '&': out += "&amp;"; break;
      default: out += c;
    }
  return out;
}

std::string axes(std::string_view trace) {
  std::string out =
      fmt::format("<text x=\"{}\" y=\"20\" font-weight=\"bold\">{}</text>\n", left, escaped(trace));
  for (unsigned p = from; p <= highest; p += 5)
    out += fmt::format(
        "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>"
        "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
        left, width - right, y_of(p), y_of(p), left - 6, y_of(p) + 4, p);
  for (unsigned p = from; p < curve_points; p += 10)
    out += fmt::format(
        "<line x1=\"{:.1f}\" x2=\"{:.1f}\" y1=\"{}\" y2=\"{}\" stroke=\"#ddd\"/>"
        "<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n",
        x_of(p), x_of(p), top, height - bottom, x_of(p), height - bottom + 15, p);
  // What a cluster without waste would do.
  out += fmt::format(
      "<polyline points=\"{:.1f},{:.1f} {:.1f},{:.1f} {:.1f},{:.1f}\" fill=\"none\" stroke=\"#999\" "
      "stroke-dasharray=\"4 3\"/>\n",
      x_of(from), y_of(from), x_of(100), y_of(100), x_of(curve_points - 1), y_of(100));
  out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">% of the cards asked for</text>\n",
                     (left + width - right) / 2, height - 8);
  return out;
}

std::string line(const Series& s, std::string_view colour) {
  std::string out =
      fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" points=\"", colour);
  for (unsigned p = from; p < curve_points; ++p) {
    double mean = 0;
    for (const Inflated& run : s.inflated) mean += run.curve[p] / static_cast<double>(s.inflated.size());
    if (mean >= from) out += fmt::format("{:.1f},{:.1f} ", x_of(p), y_of(mean));
  }
  return out + "\"/>\n";
}

}  // namespace

std::string plot(const std::vector<Series>& all) {
  std::vector<std::string_view> traces;
  std::vector<Strategy> policies;
  for (const Series& s : all) {
    if (std::ranges::find(traces, s.trace) == traces.end()) traces.emplace_back(s.trace);
    if (std::ranges::find(policies, s.policy) == policies.end()) policies.push_back(s.policy);
  }
  const auto wide = std::min<size_t>(traces.size() + 1, columns);  // One place more, for the legend.
  const size_t rows = (traces.size() + 1 + columns - 1) / columns;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
      "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n",
      static_cast<double>(wide) * width, static_cast<double>(rows) * height);
  const auto panel = [&](size_t i) {
    const size_t row_number = i / columns;
    const auto row = static_cast<double>(row_number);
    return fmt::format("<g transform=\"translate({} {})\">\n", static_cast<double>(i % columns) * width,
                       row * height);
  };
  for (size_t i = 0; i < traces.size(); ++i) {
    out += panel(i) + axes(traces[i]);
    for (const Series& s : all)
      if (s.trace == traces[i])
        out += line(s, colours[static_cast<size_t>(std::ranges::find(policies, s.policy) - policies.begin()) %
                               std::size(colours)]);
    out += "</g>\n";
  }
  out += panel(traces.size());
  out += fmt::format("<text x=\"{}\" y=\"20\" font-weight=\"bold\">% of the cards in use</text>\n", left);
  for (size_t p = 0; p < policies.size(); ++p)
    out += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"{3}\" stroke-width=\"3\"/>"
        "<text x=\"{4}\" y=\"{5}\">{6}</text>\n",
        left, left + 24, 40 + 18 * p, colours[p % std::size(colours)], left + 32, 44 + 18 * p,
        text(policies[p]));
  out += fmt::format(
      "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"#999\" stroke-dasharray=\"4 3\"/>"
      "<text x=\"{3}\" y=\"{4}\">nothing wasted</text>\n",
      left, left + 24, 40 + 18 * policies.size(), left + 32, 44 + 18 * policies.size());
  return out + "</g>\n</svg>\n";
}

}  // namespace carve::replay
