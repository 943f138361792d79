use punctual_report::escape::NoBreak;
use punctual_report::format::format_count;
use punctual_trace::event::{Event, Kind, SwitchOut, Task};
use punctual_trace::jobs::Config;
use punctual_trace::recorded::{Recorded, Source};
use punctual_trace::stats::{Summary, Term};

use super::*;
use crate::export::table;

const IDLE: Task = Task { id: 0, priority: 120 };

/// Jobs of 1 ms, of many threads in sequence, on CPU 0.
fn page_of(threads: u32, jobs: u32, names: &Names, about: &About) -> (String, Written) {
    let mut watch = Watch::new(Config { segments: true, ..Config::default() }, KEEP);
    let mut collector = Collector::new();
    let mut time = 1_000_000;
    for job in 0..jobs {
        for thread in 1..=threads {
            let task = Task { id: thread, priority: (thread % 90) as i32 };
            let mut feed = |after: u64, by: Task, kind| {
                time += after;
                let event = Event { time, cpu: 0, by: by.id, kind };
                collector.event(&event);
                watch.feed(&event, &mut |job| collector.job(job), &mut |_| {});
            };
            feed(1_000, IDLE, Kind::Waking { task, cpu: 0 });
            feed(2_000, IDLE, Kind::Switch { from: IDLE, reason: SwitchOut::Runnable, to: task });
            feed(u64::from(job * 977 % 10_007), task, Kind::IrqEntry { irq: 24 });
            feed(3_000, task, Kind::IrqExit { irq: 24 });
            feed(10_000, task, Kind::Switch { from: task, reason: SwitchOut::Sleeping, to: IDLE });
        }
    }
    watch.finish(&mut |job| collector.job(job));
    let report = Report::new(about, &watch, &collector, names);
    let mut page = Vec::new();
    let written = write(&report, &mut page).unwrap();
    assert_eq!(page.len(), written.bytes);
    (String::from_utf8(page).unwrap(), written)
}

fn numbers<'a>(text: &'a str, before: &str) -> impl Iterator<Item = u64> + use<'a> {
    let parts: Vec<&str> = text.split(before).skip(1).collect();
    parts.into_iter().map(|rest| rest.split('"').next().unwrap().parse().unwrap())
}

#[test]
fn escapes_text_and_needs_no_network() {
    let evil = "</style></script><script>alert(1)</script>\"'&\u{0}<!--";
    let mut names = Names::new();
    (0..4).for_each(|thread| names.thread(thread, evil));
    names.irq(24, evil);
    let list = vec![evil.to_owned(); 3];
    let about = About {
        title: evil.into(),
        source: evil.into(),
        system: evil.into(),
        clock: evil.into(),
        absent: list.clone(),
        notes: list.clone(),
        statistics: list,
        skipped: vec![(evil.to_owned(), 7)],
        ..About::default()
    };
    let (page, _) = page_of(3, 20, &names, &about);
    assert_eq!((page.matches("<script").count(), page.matches("</script").count()), (1, 1));
    // One for the page, one for readers without scripts.
    assert_eq!(page.matches("</style>").count(), 2);
    assert!(!page.contains('\u{0}') && !page.contains("<!--"));
    for outside in ["http:", "https:", "src=", "url(", "@import", "javascript:"] {
        assert!(!page.contains(outside), "{outside}");
    }
    assert!(page.contains("&lt;script&gt;"));
}

#[test]
fn puts_every_job_into_every_histogram() {
    let (page, written) = page_of(2, 400, &Names::new(), &About::default());
    assert!(!page.contains("NaN") && !page.contains("inf"));
    assert_eq!((written.timelines, written.left_out), (2 * KEEP, 0));
    for section in page.split("<section class=\"task\"").skip(1) {
        for term in Term::ALL {
            let figure = section.split(&format!(" data-term=\"{}\"><fig", term.letter())).nth(1);
            // B has no figure: no thread waits for a lock.
            let Some(figure) = figure else {
                assert_eq!(term, Term::Blocking);
                continue;
            };
            let figure = figure.split("</figure>").next().unwrap();
            assert_eq!(numbers(figure, "data-n=\"").sum::<u64>(), 400, "{term:?}");
            // SS in two parts: entry and exit.
            assert_eq!(numbers(figure, "data-max=\"").count(), if term == Term::Overhead { 2 } else { 1 });
        }
    }
}

#[test]
fn stays_within_page_limit_and_lists_omissions() {
    let (page, written) = page_of(128, 40, &Names::new(), &About::default());
    assert_eq!(page.matches("<section class=\"task\"").count(), MAX_SECTIONS);
    assert!(written.bytes <= MAX_BYTES, "{written:?}");
    assert!(page.contains("64 more tasks, which took less time"));
    // Names of maximum length leave less room for timelines.
    let mut names = Names::new();
    (0..128).for_each(|thread| names.thread(thread, &"<".repeat(1_000)));
    let (page, written) = page_of(128, 13, &names, &About::default());
    assert!(written.bytes <= MAX_BYTES, "{written:?}");
    assert!(written.left_out > 0 && page.contains("have no timeline here: the page would be too large"));
    let left_out: u64 = page
        .split("<p class=\"note\">")
        .filter_map(|note| note.split_once(" of the 12 jobs kept")?.0.parse::<u64>().ok())
        .sum();
    assert_eq!(left_out as usize, written.left_out);
}

#[test]
fn writes_page_for_empty_recording() {
    let (page, written) = page_of(0, 0, &Names::new(), &About::default());
    assert!(page.ends_with("</html>\n") && page.contains("No job of a chosen thread was seen"));
    assert_eq!(written.timelines, 0);
}

#[test]
fn reports_kernel_loss_counts_per_cpu() {
    let statistics =
        |cpu, overrun| format!("CPU: {cpu}\nentries: 5\noverrun: {overrun}\ndropped events: 2\n");
    let about = About {
        statistics: vec![statistics(0, 0), statistics(3, 1_000), "nonsense".into()],
        ..About::default()
    };
    let (page, _) = page_of(1, 10, &Names::new(), &about);
    assert!(page.contains("<td class=\"fault\">1\u{202F}002</td>"), "{page}");
    assert!(page.contains("<span>Events lost</span><strong class=\"fault\">1\u{202F}004</strong>"));
}

/// For nine in ten jobs, a wait for a lock is unknown.
#[test]
fn distinguishes_unknown_terms_from_zero() {
    let thread = Task { id: 7, priority: 10 };
    let mut watch = Watch::new(
        Config { recorded: Recorded::all().without(Source::Contention), ..Config::default() },
        KEEP,
    );
    let mut collector = Collector::new();
    for time in [1_000, 2_000, 3_000] {
        let mut feed = |after: u64, by: Task, kind| {
            let event = Event { time: time + after, cpu: 0, by: by.id, kind };
            watch.feed(&event, &mut |job| collector.job(job), &mut |_| {});
        };
        feed(0, IDLE, Kind::Waking { task: thread, cpu: 0 });
        feed(10, IDLE, Kind::Switch { from: IDLE, reason: SwitchOut::Runnable, to: thread });
        feed(90, thread, Kind::Switch { from: thread, reason: SwitchOut::Sleeping, to: IDLE });
    }
    let (about, names) = (About::default(), Names::new());
    let mut page = Vec::new();
    write(&Report::new(&about, &watch, &collector, &names), &mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("<span>Longest blocking</span><strong>unknown</strong>"), "{page}");
    assert!(page.contains("<span>Longest interference</span><strong>none</strong>"), "{page}");
}

#[test]
fn explains_every_sign_before_times() {
    let (page, _) = page_of(1, 10, &Names::new(), &About::default());
    let explained =
        page.split("<p>The longest of each term in µs.").nth(1).unwrap().split("</p>").next().unwrap();
    for (bounded, at_least) in [(1, 0), (0, 1), (1, 1)] {
        let sign = table::sign(&Summary { count: 2, bounded, at_least, ..Summary::default() }).trim();
        assert!(!sign.is_empty() && explained.contains(sign), "{sign} is not in {explained}");
    }
    assert!(explained.contains('–'), "{explained}");
}

#[test]
fn accepts_any_count_of_lost_events() {
    let mut collector = Collector::new();
    collector.event(&Event { time: 1, cpu: 3, by: 0, kind: Kind::Lost { count: 0 } });
    let statistics = vec![format!("CPU: 3\noverrun: {}\n", u64::MAX)];
    let about = About { statistics, ..About::default() };
    let (watch, names) = (Watch::new(Config::default(), KEEP), Names::new());
    let mut page = Vec::new();
    write(&Report::new(&about, &watch, &collector, &names), &mut page).unwrap();
    let lost = format!("<td class=\"fault\">{}</td>", NoBreak(&format_count(u64::MAX)));
    assert!(String::from_utf8(page).unwrap().contains(&lost));
}
