//! The few SVG elements that the drawings are made of.
//!
//! Everything that is a matter of looks (colours, widths, fonts) is left to classes in the style sheet, so that a drawing
//! follows the light or dark scheme of the page. Classes are literals; whatever comes from a trace is escaped here.

use std::fmt::Write as _;

use punctual_html::Escaped;

/// A drawing that is being made.
#[derive(Debug)]
pub(super) struct Svg {
    body: String,
    width: f64,
}

/// Where a text is relative to its position.
#[derive(Debug, Clone, Copy)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

// Writing to a String does not fail.
impl Svg {
    /// An empty drawing of that many units, which are pixels at its natural size.
    pub(super) fn new(width: f64) -> Self {
        Self { body: String::new(), width }
    }

    pub(super) fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = write!(
            self.body,
            "<path class=\"{class}\" d=\"M{} {}L{} {}\"/>",
            Short(x1),
            Short(y1),
            Short(x2),
            Short(y2)
        );
    }

    /// A path, of which `d` is made of numbers alone.
    pub(super) fn path(&mut self, class: &str, d: &str) {
        let _ = write!(self.body, "<path class=\"{class}\" d=\"{d}\"/>");
    }

    /// A path of that width.
    pub(super) fn path_wide(&mut self, class: &str, wide: f64, d: &str) {
        let wide = Short(wide);
        let _ = write!(self.body, "<path class=\"{class}\" stroke-width=\"{wide}\" d=\"{d}\"/>");
    }

    /// A rectangle; `attributes` are literals and numbers, `title` is shown when it is pointed at.
    pub(super) fn rect(
        &mut self,
        class: &str,
        at: (f64, f64),
        size: (f64, f64),
        attributes: &str,
        title: &str,
    ) {
        let ((x, y), (width, height)) = (at, size);
        let (x, y, width, height) = (Short(x), Short(y), Short(width), Short(height));
        let _ = write!(
            self.body,
            "<path class=\"{class}\"{attributes} d=\"M{x} {y}h{width}v{height}h-{width}z\""
        );
        let _ = match title {
            "" => write!(self.body, "/>"),
            title => write!(self.body, "><title>{}</title></path>", Escaped(title)),
        };
    }

    pub(super) fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let (x, y, text) = (Short(at.0), Short(at.1), Escaped(text));
        let _ = write!(self.body, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\"{anchor}>{text}</text>");
    }

    pub(super) fn dot(&mut self, class: &str, at: (f64, f64), radius: f64, title: &str) {
        let (x, y, title) = (Short(at.0), Short(at.1), Escaped(title));
        let _ = write!(
            self.body,
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"><title>{title}</title></circle>"
        );
    }

    /// The finished drawing of that height, described by `label`; `attributes` are literals and numbers.
    pub(super) fn finish(self, class: &str, height: f64, attributes: &str, label: &str) -> String {
        let Self { body, width } = self;
        let label = Escaped(label);
        format!(
            "<svg class=\"{class}\"{attributes} viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{label}\">\
             {body}</svg>"
        )
    }
}

/// A coordinate to a tenth of a pixel, as short as it can be.
pub(super) struct Short(pub(super) f64);

impl std::fmt::Display for Short {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let tenths = (self.0 * 10.0).round() as i64;
        if tenths % 10 == 0 { write!(f, "{}", tenths / 10) } else { write!(f, "{}", tenths as f64 / 10.0) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_wherever_it_goes() {
        let evil = "\"><script>";
        let mut svg = Svg::new(10.0);
        svg.text("t", (1.0, 2.0), Anchor::Start, evil);
        svg.rect("r", (1.0, 2.0), (3.0, 4.0), "", evil);
        svg.dot("d", (1.0, 2.0), 3.0, evil);
        let drawing = svg.finish("c", 10.0, "", evil);
        assert!(!drawing.contains("<script>"));
        assert_eq!(drawing.matches("&quot;&gt;&lt;script&gt;").count(), 4);
    }

    #[test]
    fn numbers_are_short() {
        let texts = [0.0, -0.04, 12.34, 12.96, -3.25].map(|number| Short(number).to_string());
        assert_eq!(texts, ["0", "0", "12.3", "13", "-3.3"]);
    }
}
