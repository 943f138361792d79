//! A run as one page of HTML that needs nothing else: no network, no scripts.
//!
//! Every group of rows is a chart, with a histogram for each row on one logarithmic axis of time, and a table. The page
//! follows the reader's choice of light or dark.

mod chart;
mod page;

use crate::compare::Comparison;
use crate::model::Run;

/// The page. With a comparison it says what has changed.
pub fn page(run: &Run, comparison: Option<&Comparison>) -> String {
    page::page(run, comparison)
}

#[cfg(test)]
mod tests {
    use crate::compare::Comparison;
    use crate::sample::{row, run};

    #[test]
    fn draws_every_sample_of_every_row() {
        let run = run(vec![row("a/x", "Punctual", 1000), row("b/x", "POSIX", 70_000)]);
        let page = super::page(&run, None);
        for row in run.rows() {
            let chart = page.split(&format!("data-row=\"{}\"", row.id)).nth(1).expect("the row has a chart");
            let chart = chart.split("</g>").next().unwrap();
            let counts = chart.split("data-count=\"").skip(1).map(|rest| rest.split('"').next().unwrap());
            let drawn: u64 = counts.map(|count| count.parse::<u64>().unwrap()).sum();
            assert_eq!(drawn, row.figures.as_ref().unwrap().samples, "{}", row.id);
        }
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }

    #[test]
    fn escapes_text_and_needs_no_network() {
        let evil = "</style><script>alert(1)</script>\"'&\u{0}\u{202E}";
        let mut hostile = row("x\"><script>", evil, 1000);
        hostile.operation = evil.into();
        hostile.why.push(evil.into());
        hostile.published[0].system = evil.into();
        hostile.causes[0].name = evil.into();
        let mut run = run(vec![hostile]);
        run.machine.kernel = evil.into();
        run.suites[0].checks[0].observed = evil.into();
        let comparison = Comparison::new(&run, &run);
        let page = super::page(&run, Some(&comparison));
        assert!(!page.contains("<script") && !page.contains(['\u{0}', '\u{202E}']));
        assert_eq!(page.matches("</style>").count(), 1);
        for outside in ["http:", "https:", "src=", "url(", "@import"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn writes_page_for_empty_run() {
        let mut run = run(Vec::new());
        run.suites.clear();
        run.interrupted = true;
        let page = super::page(&run, None);
        assert!(page.ends_with("</html>\n") && page.contains("ended before it was through"));
    }
}
