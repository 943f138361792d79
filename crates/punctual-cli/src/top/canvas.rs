//! A grid of characters that is drawn in memory and then written to a terminal as a whole.

use std::fmt::Write as _;

/// Appearance of a character.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Style {
    bold: bool,
    dim: bool,
    underlined: bool,
    reversed: bool,
    red: bool,
}

impl Style {
    pub(super) const PLAIN: Self =
        Self { bold: false, dim: false, underlined: false, reversed: false, red: false };
    pub(super) const BOLD: Self = Self { bold: true, ..Self::PLAIN };
    pub(super) const DIM: Self = Self { dim: true, ..Self::PLAIN };
    pub(super) const RED: Self = Self { red: true, ..Self::PLAIN };
    pub(super) const REVERSED: Self = Self { reversed: true, ..Self::PLAIN };
    pub(super) const CHOSEN: Self = Self { underlined: true, ..Self::BOLD };

    /// Returns a style with the properties of both.
    pub(super) fn and(self, other: Self) -> Self {
        Self {
            bold: self.bold || other.bold,
            dim: self.dim || other.dim,
            underlined: self.underlined || other.underlined,
            reversed: self.reversed || other.reversed,
            red: self.red || other.red,
        }
    }

    /// Returns the control sequence that selects it ("select graphic rendition" of ECMA-48).
    fn sequence(self) -> String {
        let parts = [(self.bold, 1), (self.dim, 2), (self.underlined, 4), (self.reversed, 7), (self.red, 31)];
        let codes = parts.iter().filter(|(is_set, _)| *is_set).map(|(_, code)| format!(";{code}"));
        format!("\x1b[0{}m", codes.collect::<String>())
    }
}

/// A line of text in parts of different styles.
#[derive(Debug, Clone, Default)]
pub(super) struct Line(pub(super) Vec<(String, Style)>);

impl Line {
    pub(super) fn new(text: impl Into<String>, style: Style) -> Self {
        Self(vec![(text.into(), style)])
    }

    pub(super) fn push(&mut self, text: impl Into<String>, style: Style) {
        self.0.push((text.into(), style));
    }

    /// Returns the number of characters.
    pub(super) fn width(&self) -> usize {
        self.characters().count()
    }

    fn characters(&self) -> impl Iterator<Item = (char, Style)> {
        self.0.iter().flat_map(|(text, style)| text.chars().map(|c| (c, *style)))
    }

    /// Breaks the line between words into lines of at most `width` characters, and words that are
    /// longer.
    fn wrapped(&self, width: usize) -> Vec<Vec<(char, Style)>> {
        let mut rest: Vec<(char, Style)> = self.characters().collect();
        let mut lines = Vec::new();
        while width > 0 && rest.len() > width {
            let space = rest[..=width].iter().rposition(|(c, _)| *c == ' ').filter(|at| *at > 0);
            let after = rest.split_off(space.unwrap_or(width));
            lines.push(std::mem::replace(&mut rest, after));
            let is_blank = |(c, _): &(char, Style)| *c == ' ';
            rest.drain(..rest.iter().take_while(|cell| is_blank(cell)).count());
        }
        lines.push(rest);
        lines
    }
}

impl From<String> for Line {
    fn from(text: String) -> Self {
        Self::new(text, Style::PLAIN)
    }
}

/// A part of the canvas, in characters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area {
    pub(super) x: usize,
    pub(super) y: usize,
    pub(super) width: usize,
    pub(super) height: usize,
}

impl Area {
    /// Splits off at most `height` lines at the top.
    pub(super) fn split_top(&mut self, height: usize) -> Self {
        let top = Self { height: height.min(self.height), ..*self };
        self.y += top.height;
        self.height -= top.height;
        top
    }

    /// Splits off at most `height` lines at the bottom.
    pub(super) fn split_bottom(&mut self, height: usize) -> Self {
        let height = height.min(self.height);
        self.height -= height;
        Self { y: self.y + self.height, height, ..*self }
    }

    /// Splits off at most `width` columns at the left.
    pub(super) fn split_left(&mut self, width: usize) -> Self {
        let left = Self { width: width.min(self.width), ..*self };
        self.x += left.width;
        self.width -= left.width;
        left
    }
}

/// The grid.
pub(super) struct Canvas {
    width: usize,
    height: usize,
    cells: Vec<(char, Style)>,
}

impl Canvas {
    pub(super) fn new(width: usize, height: usize) -> Self {
        Self { width, height, cells: vec![(' ', Style::PLAIN); width * height] }
    }

    /// Returns the whole area.
    pub(super) fn area(&self) -> Area {
        Area { x: 0, y: 0, width: self.width, height: self.height }
    }

    /// Returns the cell, if it is inside.
    pub(super) fn cell(&mut self, x: usize, y: usize) -> Option<&mut (char, Style)> {
        if x < self.width { self.cells.get_mut(y * self.width + x) } else { None }
    }

    /// Writes a line at the left of an area's first line; what does not fit is not shown. Control
    /// characters are not written either.
    pub(super) fn line(&mut self, area: Area, line: &Line) {
        self.write(area, line.characters());
    }

    /// Writes a text, as [`Canvas::line`] does.
    pub(super) fn text(&mut self, area: Area, text: &str, style: Style) {
        self.write(area, text.chars().map(|c| (c, style)));
    }

    /// Writes a text at the right of an area's first line.
    pub(super) fn text_right(&mut self, mut area: Area, text: &str, style: Style) {
        area.split_left(area.width.saturating_sub(text.chars().count()));
        self.text(area, text, style);
    }

    fn write(&mut self, area: Area, cells: impl Iterator<Item = (char, Style)>) {
        if area.height == 0 {
            return;
        }
        for (x, new) in (area.x..area.x + area.width).zip(cells.filter(|(c, _)| !c.is_control())) {
            if let Some(cell) = self.cell(x, area.y) {
                *cell = new;
            }
        }
    }

    /// Writes lines, wrapped between words, without the first `skipped` ones.
    pub(super) fn wrapped(&mut self, mut area: Area, lines: &[Line], skipped: usize) {
        let width = area.width;
        for cells in lines.iter().flat_map(|line| line.wrapped(width)).skip(skipped) {
            self.write(area.split_top(1), cells.into_iter());
        }
    }

    /// Adds a style to all cells of an area's first line.
    pub(super) fn style(&mut self, area: Area, style: Style) {
        for x in area.x..area.x + area.width.min(self.width * area.height) {
            if let Some(cell) = self.cell(x, area.y) {
                cell.1 = cell.1.and(style);
            }
        }
    }

    /// Draws a horizontal rule with a title at its beginning at the top of an area; returns the
    /// rest.
    pub(super) fn titled(&mut self, mut area: Area, title: &str) -> Area {
        let top = area.split_top(1);
        self.text(top, &"─".repeat(top.width), Style::PLAIN);
        self.text(top, title, Style::PLAIN);
        area
    }

    /// Draws a bar for each number from the left; `max` is as high as the area.
    pub(super) fn bars(&mut self, area: Area, numbers: impl Iterator<Item = u64>, max: u64) {
        const EIGHTHS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
        for (x, number) in (area.x..area.x + area.width).zip(numbers) {
            let eighths = (u128::from(number) * 8 * area.height as u128 / u128::from(max.max(1))) as usize;
            for line in 0..area.height {
                let part = eighths.saturating_sub(8 * line).min(8);
                if let Some(cell) = self.cell(x, area.y + area.height - 1 - line) {
                    *cell = (EIGHTHS[part], Style::PLAIN);
                }
            }
        }
    }

    /// Returns the control sequences that draw it on a terminal.
    pub(super) fn encode(&self) -> String {
        let mut text = String::new();
        let mut style = Style::PLAIN;
        for (y, line) in self.cells.chunks(self.width.max(1)).enumerate() {
            // The position of a line, from 1.
            let _ = write!(text, "\x1b[{};1H", y + 1);
            for (character, new) in line {
                if *new != style {
                    style = *new;
                    text += &style.sequence();
                }
                text.push(*character);
            }
        }
        text + &Style::PLAIN.sequence()
    }

    /// Returns the lines without styles and trailing spaces.
    #[cfg(test)]
    pub(super) fn lines(&self) -> Vec<String> {
        let line = |cells: &[(char, Style)]| cells.iter().map(|(c, _)| c).collect::<String>();
        self.cells.chunks(self.width).map(|cells| line(cells).trim_end().to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_between_words_and_breaks_long_ones() {
        let mut canvas = Canvas::new(6, 5);
        let lines = [Line::from("one two threefour".to_owned()), Line::from("  a".to_owned())];
        canvas.wrapped(canvas.area(), &lines, 0);
        assert_eq!(canvas.lines(), ["one", "two", "threef", "our", "  a"]);
        let mut scrolled = Canvas::new(6, 2);
        scrolled.wrapped(scrolled.area(), &lines, 3);
        assert_eq!(scrolled.lines(), ["our", "  a"]);
    }

    #[test]
    fn clips_text_and_omits_control_characters() {
        let mut canvas = Canvas::new(4, 1);
        canvas.text(canvas.area(), "a\x1b\nbcdef", Style::PLAIN);
        assert_eq!(canvas.lines(), ["abcd"]);
        canvas.text_right(canvas.area(), "xy", Style::RED);
        assert_eq!(canvas.lines(), ["abxy"]);
        canvas.text(Area { x: 3, y: 7, width: 9, height: 1 }, "zz", Style::PLAIN);
        assert_eq!(canvas.lines(), ["abxy"]);
    }

    #[test]
    fn bars_have_eighths_of_lines() {
        let mut canvas = Canvas::new(4, 2);
        canvas.bars(canvas.area(), [0, 1, 9, 16].into_iter(), 16);
        assert_eq!(canvas.lines(), ["  ▁█", " ▁██"]);
    }

    #[test]
    fn encodes_positions_and_changes_of_style() {
        let mut canvas = Canvas::new(2, 2);
        canvas.text(canvas.area(), "ab", Style::RED.and(Style::BOLD));
        assert_eq!(canvas.encode(), "\x1b[1;1H\x1b[0;1;31mab\x1b[2;1H\x1b[0m  \x1b[0m");
    }

    #[test]
    fn splits_areas_within_their_bounds() {
        let mut area = Canvas::new(10, 5).area();
        let (top, bottom, left) = (area.split_top(2), area.split_bottom(9), area.split_left(3));
        assert_eq!((top.y, top.height), (0, 2));
        assert_eq!((bottom.y, bottom.height), (2, 3));
        assert_eq!((area.height, left.width, area.x, area.width), (0, 3, 3, 7));
    }
}
