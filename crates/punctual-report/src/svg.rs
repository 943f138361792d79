//! The SVG elements of drawings.
//!
//! Style-sheet classes determine colors, widths and fonts, so that a drawing follows the light or
//! dark scheme of its page.
//!
//! ```
//! use punctual_report::svg::{Anchor, Mark, Svg};
//!
//! let mut svg = Svg::new(100.0);
//! svg.line("axis", (0.0, 20.0), (100.0, 20.0));
//! svg.rect("bar", (10.0, 5.0), (8.0, 15.0), &Mark::titled("3 jobs").data("n", 3));
//! svg.text("tick", (10.0, 30.0), Anchor::Middle, "<1 µs>");
//! let drawing = svg.finish("histogram", 35.0, &Mark::titled("Response times"));
//! assert!(drawing.contains("data-n=\"3\"") && drawing.contains("&lt;1 µs&gt;"));
//! ```

use std::fmt::{self, Display, Formatter, Write as _};

use crate::escape::Escaped;
use crate::text;

/// The width of a character in drawings, an upper estimate, since fonts differ.
const CHARACTER: f64 = 6.8;
/// The same of a capital letter, and of the widest small ones.
const CAPITAL: f64 = 8.6;

/// Returns an upper estimate of the width of a text.
#[must_use]
pub fn width(text: &str) -> f64 {
    let is_wide = |c: char| c.is_uppercase() || matches!(c, 'm' | 'w' | '…' | '%' | '@');
    text.chars().map(|c| if is_wide(c) { CAPITAL } else { CHARACTER }).sum()
}

/// Shortens a text to this width.
#[must_use]
pub fn fitted(text: &str, room: f64) -> String {
    let longest = (room / CHARACTER) as usize;
    let mut shortened = (1..=longest).rev().map(|length| text::shortened(text, length));
    shortened.find(|text| width(text) <= room).unwrap_or_else(|| text::shortened(text, 1))
}

/// The alignment of a text at its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Anchor {
    /// Starts there.
    Start,
    /// Centered there.
    Middle,
    /// Ends there.
    End,
}

/// The title and data attributes of an element: for tooltips, scripts and tests.
#[derive(Debug, Clone, Default)]
pub struct Mark {
    title: String,
    data: String,
}

impl Mark {
    /// Returns a mark without title and data.
    #[must_use]
    pub const fn none() -> Self {
        Self { title: String::new(), data: String::new() }
    }

    /// Returns a mark with a title: a tooltip, and read by screen readers instead of a whole
    /// drawing.
    #[must_use]
    pub fn titled(title: impl Into<String>) -> Self {
        Self { title: title.into(), data: String::new() }
    }

    /// Adds an attribute `data-…`.
    #[must_use]
    pub fn data(mut self, name: &'static str, value: impl Display) -> Self {
        let _ = write!(self.data, " data-{name}=\"{}\"", Escaped(&value.to_string()));
        self
    }
}

/// A drawing under construction.
#[derive(Debug, Clone)]
pub struct Svg {
    body: String,
    width: f64,
}

// Writing to a String does not fail.
impl Svg {
    /// Creates an empty drawing of this width in units, which are pixels at its natural size.
    #[must_use]
    pub const fn new(width: f64) -> Self {
        Self { body: String::new(), width }
    }

    /// Returns the width.
    #[must_use]
    pub const fn width(&self) -> f64 {
        self.width
    }

    /// Adds a straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let [x1, y1, x2, y2] = [from.0, from.1, to.0, to.1].map(Short);
        self.path(class, &format!("M{x1} {y1}L{x2} {y2}"), &Mark::none());
    }

    /// Adds straight lines from point to point.
    pub fn polyline(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut d = String::new();
        for (index, &(x, y)) in points.iter().enumerate() {
            let _ = write!(d, "{}{} {}", if index == 0 { 'M' } else { 'L' }, Short(x), Short(y));
        }
        self.path(class, &d, &Mark::none());
    }

    /// Adds a rectangle, from its upper left corner.
    pub fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), mark: &Mark) {
        let [x, y, width, height] = [at.0, at.1, size.0, size.1].map(Short);
        self.path(class, &format!("M{x} {y}h{width}v{height}h-{width}z"), mark);
    }

    /// Adds a path with the commands `d`, which are letters and numbers.
    pub fn path(&mut self, class: &str, d: &str, mark: &Mark) {
        self.element("path", class, format_args!(" d=\"{}\"", Escaped(d)), mark);
    }

    /// Adds a path with this line width.
    pub fn path_of_width(&mut self, class: &str, width: f64, d: &str) {
        let (width, d) = (Short(width), Escaped(d));
        self.element("path", class, format_args!(" stroke-width=\"{width}\" d=\"{d}\""), &Mark::none());
    }

    /// Adds a circle.
    pub fn dot(&mut self, class: &str, at: (f64, f64), radius: f64, mark: &Mark) {
        let [x, y, radius] = [at.0, at.1, radius].map(Short);
        self.element("circle", class, format_args!(" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\""), mark);
    }

    fn element(&mut self, name: &str, class: &str, attributes: fmt::Arguments<'_>, mark: &Mark) {
        let (class, data) = (Escaped(class), &mark.data);
        let _ = write!(self.body, "<{name} class=\"{class}\"{data}{attributes}");
        let _ = match mark.title.as_str() {
            "" => write!(self.body, "/>"),
            title => write!(self.body, "><title>{}</title></{name}>", Escaped(title)),
        };
    }

    /// Adds a text.
    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (class, x, y, text) = (Escaped(class), Short(at.0), Short(at.1), Escaped(text));
        let _ = write!(self.body, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>");
    }

    /// Adds a group with the elements that `draw` adds.
    pub fn group(&mut self, class: &str, mark: &Mark, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.body, "<g class=\"{}\"{}>", Escaped(class), mark.data);
        draw(self);
        self.body += "</g>";
    }

    /// Adds a link to the element `to` of the page, with the content that `draw` adds. It is not a
    /// tab stop: keyboard users reach the target in other ways.
    pub fn link(&mut self, to: &str, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.body, "<a href=\"#{}\" tabindex=\"-1\">", Escaped(to));
        draw(self);
        self.body += "</a>";
    }

    /// Returns the finished drawing of that height; screen readers read the title of `mark` instead
    /// of it.
    #[must_use]
    pub fn finish(self, class: &str, height: f64, mark: &Mark) -> String {
        let Self { body, width } = self;
        let (class, label, data) = (Escaped(class), Escaped(&mark.title), &mark.data);
        let (width, height) = (Short(width), Short(height));
        format!(
            "<svg class=\"{class}\"{data} viewBox=\"0 0 {width} {height}\" style=\"--width:{width}px\" role=\"img\" \
             aria-label=\"{label}\">{body}</svg>"
        )
    }
}

/// A coordinate to a tenth of a unit, in its shortest form; NaN becomes 0.
#[derive(Debug, Clone, Copy)]
pub struct Short(pub f64);

impl Display for Short {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        if tenths % 10 == 0 { write!(f, "{}", tenths / 10) } else { write!(f, "{}", tenths as f64 / 10.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_text_everywhere() {
        let evil = "\"><script>";
        let mut svg = Svg::new(10.0);
        let mark = Mark::titled(evil).data("n", evil);
        svg.text(evil, (1.0, 2.0), Anchor::Start, evil);
        svg.rect(evil, (1.0, 2.0), (3.0, 4.0), &mark);
        svg.dot(evil, (1.0, 2.0), 3.0, &mark);
        svg.path(evil, evil, &mark);
        svg.group(evil, &mark, |svg| svg.line(evil, (0.0, 0.0), (1.0, 1.0)));
        svg.link(evil, |_| {});
        let drawing = svg.finish(evil, 10.0, &mark);
        assert!(!drawing.contains("<script>"));
        assert_eq!(drawing.matches("&quot;&gt;&lt;script&gt;").count(), 19);
    }

    #[test]
    fn writes_short_finite_numbers() {
        let texts = [0.0, -0.04, 12.34, 12.96, -3.25, f64::NAN].map(|number| Short(number).to_string());
        assert_eq!(texts, ["0", "0", "12.3", "13", "-3.3", "0"]);
        assert!(!Short(f64::INFINITY).to_string().contains("inf"));
    }

    #[test]
    fn fits_text_into_space() {
        for room in [0.0, 34.0, 100.0, f64::NAN] {
            for text in ["ööööööööö", "SCHED_OTHER"] {
                assert!(width(&fitted(text, room)) <= room.max(CAPITAL), "{room}");
            }
        }
        assert!(fitted("kworker/13523", 76.0).chars().count() < 11, "its w and the ellipsis are wide");
    }
}
