#include "cli/curses_screen.h"

#include <langinfo.h>
#include <unistd.h>

#include <clocale>
#include <cstdio>
#include <string_view>

// ncurses defines macros with common names, so it is included last and only here.
#define NCURSES_NOMACROS
#include <ncurses.h>

namespace carve::cli {
namespace {

constexpr int escape_delay_ms = 25;  // The longest time between the bytes of a key's sequence.

attr_t attribute(Ink ink, bool colour) {
  switch (ink) {
    case Ink::plain: return A_NORMAL;
    case Ink::bold: return A_BOLD;
    case Ink::dim: return A_DIM;
    default: return colour ? static_cast<attr_t>(COLOR_PAIR(static_cast<int>(ink))) : A_NORMAL;
  }
}

void define_colours() {
  constexpr std::pair<Ink, short> colours[] = {{Ink::red, COLOR_RED},         {Ink::green, COLOR_GREEN},
                                               {Ink::yellow, COLOR_YELLOW},   {Ink::blue, COLOR_BLUE},
                                               {Ink::magenta, COLOR_MAGENTA}, {Ink::cyan, COLOR_CYAN}};
  start_color();
  use_default_colors();
  for (const auto& [ink, colour] : colours) init_pair(static_cast<short>(ink), colour, -1);
}

}  // namespace

CursesScreen::CursesScreen(bool colour) {
  std::setlocale(LC_ALL, "");
  fine_ = std::string_view(nl_langinfo(CODESET)) == "UTF-8";
  screen_ = newterm(nullptr, stdout, stdin);
  if (screen_ == nullptr) return;
  set_term(static_cast<SCREEN*>(screen_));
  set_escdelay(escape_delay_ms);
  cbreak();
  noecho();
  nodelay(stdscr, true);
  keypad(stdscr, true);
  curs_set(0);
  colour_ = colour && has_colors();
  if (colour_) define_colours();
}

CursesScreen::~CursesScreen() {
  if (screen_ == nullptr) return;
  endwin();
  delscreen(static_cast<SCREEN*>(screen_));
}

TopSize CursesScreen::size() const {
  return {static_cast<size_t>(getmaxx(stdscr)), static_cast<size_t>(getmaxy(stdscr))};
}

std::optional<TopKey> CursesScreen::key() const {
  using Kind = TopKey::Kind;
  for (;;) {
    const int code = wgetch(stdscr);
    switch (code) {
      case ERR: return std::nullopt;
      case KEY_UP: return TopKey{Kind::up};
      case KEY_DOWN: return TopKey{Kind::down};
      case KEY_PPAGE: return TopKey{Kind::page_up};
      case KEY_NPAGE: return TopKey{Kind::page_down};
      case KEY_HOME: return TopKey{Kind::home};
      case KEY_END: return TopKey{Kind::end};
      case KEY_LEFT: return TopKey{Kind::left};
      case KEY_RIGHT: return TopKey{Kind::right};
      case KEY_ENTER:
      case '\r':
      case '\n': return TopKey{Kind::enter};
      case KEY_BACKSPACE:
      case '\b':
      case 0x7f: return TopKey{Kind::backspace};
      case 0x1b: return TopKey{Kind::escape};
      default:
        if (code >= 0 && code <= 0xff) return TopKey{Kind::character, static_cast<char>(code)};
        // A resize, the mouse or an unknown key.
    }
  }
}

void CursesScreen::show(const std::vector<StyledLine>& lines) const {
  werase(stdscr);
  for (size_t y = 0; y < lines.size(); ++y) {
    wmove(stdscr, static_cast<int>(y), 0);
    for (const Span& span : lines[y].spans) {
      wattrset(stdscr,
               static_cast<int>(attribute(span.ink, colour_) | (lines[y].reversed ? A_REVERSE : A_NORMAL)));
      waddnstr(stdscr, span.text.data(), static_cast<int>(span.text.size()));
    }
  }
  wattrset(stdscr, A_NORMAL);
  wrefresh(stdscr);
}

}  // namespace carve::cli
