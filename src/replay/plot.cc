#include "replay/plot.h"

#include <algorithm>
#include <cmath>

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
  out += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">% of the devices asked for</text>\n",
                     (left + width - right) / 2, height - 8);
  return out;
}

// The picture around so many panels, of which place() says where one lies.
std::string frame(size_t panels, const std::string& content) {
  const auto wide = std::min<size_t>(panels, columns);
  const size_t rows = (panels + columns - 1) / columns;
  return fmt::format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" "
             "font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"{0}\" height=\"{1}\" "
             "fill=\"white\"/>\n",
             static_cast<double>(wide) * width, static_cast<double>(rows) * height) +
         content + "</svg>\n";
}

std::string panel(size_t i, const std::string& content) {
  const size_t row = i / columns;
  return fmt::format("<g transform=\"translate({} {})\">\n{}</g>\n", static_cast<double>(i % columns) * width,
                     static_cast<double>(row) * height, content);
}

std::string legend(const std::string& heading, const std::vector<std::string>& names) {
  std::string out =
      fmt::format("<text x=\"{}\" y=\"20\" font-weight=\"bold\">{}</text>\n", left, escaped(heading));
  for (size_t i = 0; i < names.size(); ++i)
    out += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"{3}\" stroke-width=\"3\"/>"
        "<text x=\"{4}\" y=\"{5}\">{6}</text>\n",
        left, left + 24, 40 + 18 * i, colours[i % std::size(colours)], left + 32, 44 + 18 * i,
        escaped(names[i]));
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
  std::vector<Strategy> strategies;
  for (const Series& s : all) {
    if (std::ranges::find(traces, s.trace) == traces.end()) traces.emplace_back(s.trace);
    if (std::ranges::find(strategies, s.strategy) == strategies.end()) strategies.push_back(s.strategy);
  }
  std::string out;
  for (size_t i = 0; i < traces.size(); ++i) {
    std::string content = axes(traces[i]);
    for (const Series& s : all)
      if (s.trace == traces[i])
        content += line(
            s, colours[static_cast<size_t>(std::ranges::find(strategies, s.strategy) - strategies.begin()) %
                       std::size(colours)]);
    out += panel(i, content);
  }
  std::vector<std::string> names;
  for (const Strategy strategy : strategies) names.emplace_back(text(strategy));
  const size_t below = 40 + 18 * names.size();
  out += panel(traces.size(),  // One place more, for the legend.
               legend("% of the devices in use", names) +
                   fmt::format("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"#999\" "
                               "stroke-dasharray=\"4 3\"/><text x=\"{3}\" y=\"{4}\">nothing wasted</text>\n",
                               left, left + 24, below, left + 32, below + 4));
  return frame(traces.size() + 1, out);
}

std::string plot(const std::vector<Growth>& all, const std::string& heading) {
  // One scale of heights for all panels: whole decades.
  double lowest = 1e300;
  double largest = 0;
  for (const Growth& g : all)
    for (const Growth::Line& l : g.lines)
      for (const auto& [x, y] : l.points) lowest = std::min(lowest, y), largest = std::max(largest, y);
  const double from_y = std::floor(std::log10(lowest));
  const double to_y = std::max(from_y + 1, std::ceil(std::log10(largest)));
  const auto y_at = [&](double y) {
    return height - bottom - (std::log10(y) - from_y) * (height - top - bottom) / (to_y - from_y);
  };
  std::string out;
  for (size_t i = 0; i < all.size(); ++i) {
    const Growth& g = all[i];
    std::string content =
        fmt::format("<text x=\"{}\" y=\"20\" font-weight=\"bold\">{}</text>\n", left, escaped(g.title));
    for (double decade = from_y; decade <= to_y; ++decade) {
      const double y = std::pow(10, decade);
      content += fmt::format(
          "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#ddd\"/>"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:g}</text>\n",
          left, width - right, y_at(y), left - 6, y_at(y) + 4, y);
    }
    if (g.lines.empty() || g.lines[0].points.size() < 2) {
      out += panel(i, content);
      continue;
    }
    const auto& marks_of = g.lines[0].points;
    const double from_x = std::log10(marks_of.front().first);
    const double to_x = std::log10(marks_of.back().first);
    const auto x_at = [&](double x) {
      return left + (std::log10(x) - from_x) * (width - left - right) / (to_x - from_x);
    };
    for (const auto& [x, y] : marks_of)
      content += fmt::format(
          "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#ddd\"/>"
          "<text x=\"{0:.1f}\" y=\"{3}\" text-anchor=\"{4}\">{5:.0f}</text>\n",
          x_at(x), top, height - bottom, height - bottom + 15, x == marks_of.back().first ? "end" : "middle",
          x);
    for (size_t l = 0; l < g.lines.size(); ++l) {
      content += fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.6\" points=\"",
                             colours[l % std::size(colours)]);
      for (const auto& [x, y] : g.lines[l].points) content += fmt::format("{:.1f},{:.1f} ", x_at(x), y_at(y));
      content += "\"/>\n";
    }
    out += panel(i, content);
  }
  // There is room above the lines of the first panel, where they begin.
  std::vector<std::string> names;
  if (!all.empty())
    for (const Growth::Line& l : all[0].lines) names.push_back(l.name);
  out += fmt::format("<g transform=\"translate(8 {})\">{}</g>\n", top - 2, legend(heading, names));
  return frame(all.size(), out);
}

}  // namespace carve::replay
