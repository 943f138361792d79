//! The frame of a page: one file with its style sheet, in light or dark colors according to the
//! reader's system or choice, without a script.
//!
//! Text arguments are escaped; between backticks they become code. Arguments called HTML are not
//! escaped: build them with the other modules.
//!
//! ```
//! use punctual_report::page::{Figure, Frame, Page, note};
//!
//! let mut page = Page::new(&Frame { title: "A run", lines: &["in virtual time".into()], ..Frame::default() });
//! page.figures(&[Figure::new("Deadline misses", "3", "of 100 jobs").fault_if(true)]);
//! page.body().push_str("<section><h2>Tasks</h2>");
//! page.body().push_str(&note("none"));
//! page.body().push_str("</section>");
//! assert!(page.finish().starts_with("<!DOCTYPE html>"));
//! ```

use std::fmt::Write as _;

use crate::escape::{Code, Escaped, NoBreak};

const STYLE: &str = include_str!("style.css");

/// The header of a page.
#[derive(Debug, Clone, Copy, Default)]
pub struct Frame<'a> {
    /// The title, which is also the first heading.
    pub title: &'a str,
    /// The lines below the title; the first one states the finding.
    pub lines: &'a [String],
    /// Additional style-sheet rules, besides those for the elements of this crate.
    pub style: &'static str,
    /// Rules for readers without scripts.
    pub style_without_scripts: &'static str,
    /// A script, which runs once the page is parsed.
    pub script: &'static str,
}

/// A page under construction.
#[derive(Debug, Clone)]
pub struct Page {
    out: String,
    script: &'static str,
}

impl Page {
    /// Creates a page with its header.
    #[must_use]
    pub fn new(frame: &Frame<'_>) -> Self {
        let title = Escaped(frame.title);
        let mut out = format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\
             <meta name=\"color-scheme\" content=\"light dark\">\
             <title>{title}</title>\n<style>\n{STYLE}{}</style>\n",
            frame.style
        );
        if !frame.style_without_scripts.is_empty() {
            let _ = writeln!(out, "<noscript><style>{}</style></noscript>", frame.style_without_scripts);
        }
        let _ = write!(out, "</head>\n<body><main><header><div><h1>{title}</h1><p>");
        for (index, line) in frame.lines.iter().enumerate() {
            let _ = write!(out, "{}{}", if index > 0 { "<br>" } else { "" }, Code(line));
        }
        out += "</p></div><label class=\"theme\">Colors <select><option value=\"\">as the system</option>\
                <option value=\"light\">light</option><option value=\"dark\">dark</option></select></label></header>\n";
        Self { out, script: frame.script }
    }

    /// Returns the HTML, to append to.
    pub fn body(&mut self) -> &mut String {
        &mut self.out
    }

    /// Adds the key figures.
    pub fn figures(&mut self, figures: &[Figure]) {
        self.out += "<ul class=\"figures\">";
        for Figure { what, value, detail, is_fault } in figures {
            let class = if *is_fault { " class=\"fault\"" } else { "" };
            let (what, value, detail) = (Code(what), NoBreak(value), Code(detail));
            let _ = write!(
                self.out,
                "<li><span>{what}</span><strong{class}>{value}</strong><em>{detail}</em></li>"
            );
        }
        self.out += "</ul>\n";
    }

    /// Returns the size of the finished page, in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.out.len() + self.end().len()
    }

    /// Always `false`: a page has a header.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Returns the page as HTML.
    #[must_use]
    pub fn finish(mut self) -> String {
        let end = self.end();
        self.out += &end;
        self.out
    }

    fn end(&self) -> String {
        match self.script {
            "" => "</main></body></html>\n".into(),
            script => format!("</main>\n<script>\n{script}</script>\n</body></html>\n"),
        }
    }
}

/// A key figure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Figure {
    what: String,
    value: String,
    detail: String,
    is_fault: bool,
}

impl Figure {
    /// Creates a key figure from its name, the value with its unit, and a remark.
    pub fn new(what: impl Into<String>, value: impl Into<String>, detail: impl Into<String>) -> Self {
        Self { what: what.into(), value: value.into(), detail: detail.into(), is_fault: false }
    }

    /// Highlights it as a fault.
    #[must_use]
    pub fn fault_if(mut self, is_fault: bool) -> Self {
        self.is_fault = is_fault;
        self
    }
}

/// Returns a paragraph in less prominent style.
#[must_use]
pub fn note(text: &str) -> String {
    format!("<p class=\"note\">{}</p>\n", Code(text))
}

/// Returns the legend of a drawing: style-sheet classes with their descriptions.
#[must_use]
pub fn legend(entries: &[(&str, &str)]) -> String {
    let mut out = String::from("<ul class=\"legend\">");
    for (class, text) in entries {
        let _ = write!(out, "<li><i class=\"{}\"></i>{}</li>", Escaped(class), Code(text));
    }
    out + "</ul>"
}

/// A list of names with their values.
#[derive(Debug, Clone, Default)]
pub struct Facts(String);

impl Facts {
    /// Adds a value.
    pub fn add(&mut self, name: &str, value: &str) {
        let _ = write!(self.0, "<dt>{}</dt><dd>{}</dd>", Escaped(name), Code(value));
    }

    /// Adds a value that indicates a fault.
    pub fn add_fault(&mut self, name: &str, value: &str) {
        let _ = write!(self.0, "<dt>{}</dt><dd class=\"fault\">{}</dd>", Escaped(name), Code(value));
    }

    /// Returns the list as HTML.
    #[must_use]
    pub fn html(&self) -> String {
        format!("<dl>{}</dl>\n", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_text() {
        let evil = "</style></script><script>alert(1)</script>\"'&\u{0}<!--";
        let lines = [evil.to_owned(), evil.to_owned()];
        let mut page = Page::new(&Frame { title: evil, lines: &lines, ..Frame::default() });
        page.figures(&[Figure::new(evil, evil, evil)]);
        let mut facts = Facts::default();
        facts.add(evil, evil);
        facts.add_fault(evil, evil);
        let html = [note(evil), legend(&[(evil, evil)]), facts.html()].concat();
        page.body().push_str(&html);
        let (length, page) = (page.len(), page.finish());
        assert_eq!(
            (page.len(), page.matches("<script").count(), page.matches("</style>").count()),
            (length, 0, 1)
        );
        assert!(!page.contains('\u{0}') && !page.contains("<!--"));
    }

    #[test]
    fn writes_self_contained_page() {
        let frame = Frame {
            title: "t",
            style: "p {}\n",
            style_without_scripts: "b {}",
            script: "1;\n",
            ..Frame::default()
        };
        let page = Page::new(&frame).finish();
        for outside in ["http:", "https:", "src=", "href=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
        assert!(
            page.contains(
                "p {}\n</style>\n<noscript><style>b {}</style></noscript></head>"
                    .replace("></head>", ">\n</head>")
                    .as_str()
            )
        );
        assert!(page.ends_with("</main>\n<script>\n1;\n</script>\n</body></html>\n"));
    }
}
