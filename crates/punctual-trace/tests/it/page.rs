//! The page of a recording, in a browser: the drawing matches the decomposition, the slider moves,
//! and no error occurs.

use std::fs;
use std::path::PathBuf;

use crate::support::{IDLE, Script, task};
use punctual_process::child::{BoundedCommand, TEST_LIMIT};
use punctual_trace::event::SwitchOut::{Runnable, Sleeping};
use punctual_trace::event::{Kind, Task};
use punctual_trace::jobs::Config;
use punctual_trace::names::Names;
use punctual_trace::stats::{TaskStats, Term, Watch};
use punctual_trace_report::export::html::{About, Collector, KEEP, Report, SAMPLE, write};
use test_skip::{Need, skip};
use xtask_support::browser;
use xtask_support::scratch::Scratch;

const CONTROL: Task = task(701, 9);
const LOGGER: Task = task(702, 49);
const IRQ: Task = task(24, 4);
const WORD: u64 = 0x7ffe_1000;
const LOCK_PI: u32 = 6 | 128;
const UNLOCK_PI: u32 = 7 | 128;
const US: u64 = 1_000;

/// Plausible measurement values: xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

/// A control task every millisecond, a logger that shares a lock with it, and an interrupt with its
/// thread.
fn recording(periods: u64) -> Script {
    let (mut s, mut random) = (Script::new(), Random(7));
    for period in 0..periods {
        let t = 10_000 * US + period * 1_000 * US;
        match period % 20 {
            9 => contended(&mut s, t, &mut random),
            _ => alone(&mut s, t, &mut random),
        }
    }
    s
}

fn released(s: &mut Script, t: u64, random: &mut Random) -> u64 {
    s.at(t, 0, Kind::VectorEntry { vector: 236 }).waking(t + 1_200, 0, CONTROL, 0);
    s.at(t + 2_500, 0, Kind::VectorExit { vector: 236 });
    let start =
        t + 4 * US + random.below(3_000) + if random.below(200) == 0 { random.below(90 * US) } else { 0 };
    s.switch(start, 0, Runnable, CONTROL).scheduled(start + 800 + random.below(500), 0);
    start
}

fn alone(s: &mut Script, t: u64, random: &mut Random) {
    let start = released(s, t, random);
    s.at(start + 5 * US, 0, Kind::SyscallExit { number: 230 });
    let mut end = start + 80 * US + random.below(30 * US);
    if random.below(5) == 0 {
        let (at, long) = (start + 20 * US + random.below(20 * US), 2 * US + random.below(9 * US));
        s.at(at, 0, Kind::IrqEntry { irq: 30 }).at(at + long, 0, Kind::IrqExit { irq: 30 });
        end += long;
    }
    s.at(end - 3 * US, 0, Kind::SyscallEnter { number: 230 });
    s.schedule(end - 1_500 - random.below(900), 0).switch(end, 0, Sleeping, IDLE);
}

/// The control task waits for a lock of the logger, which an interrupt thread displaces.
fn contended(s: &mut Script, t: u64, random: &mut Random) {
    let work = random.below(400 * US);
    s.waking(t - 90 * US, 0, LOGGER, 0).switch(t - 80 * US, 0, Runnable, LOGGER).scheduled(t - 79 * US, 0);
    s.at(t - 60 * US, 0, Kind::FutexEnter { word: WORD, operation: LOCK_PI, value: 0 });
    s.at(t - 59 * US, 0, Kind::FutexExit { result: 0 });
    let start = released(s, t, random);
    let wait = start + 22 * US;
    s.at(wait, 0, Kind::FutexEnter { word: WORD, operation: LOCK_PI, value: 0 });
    s.at(wait + 2 * US, 0, Kind::Inherit { task: LOGGER.id, old: LOGGER.priority, new: CONTROL.priority });
    s.switch(wait + 5 * US, 0, Sleeping, LOGGER).priority(0, CONTROL.priority);
    let irq = wait + 40 * US;
    s.at(irq, 0, Kind::IrqEntry { irq: 24 }).waking(irq + 2 * US, 0, IRQ, 0).at(
        irq + 4 * US,
        0,
        Kind::IrqExit { irq: 24 },
    );
    s.switch(irq + 7 * US, 0, Runnable, IRQ).switch(irq + 117 * US, 0, Sleeping, LOGGER);
    s.priority(0, CONTROL.priority);
    let free = irq + 130 * US + work;
    s.at(free, 0, Kind::FutexEnter { word: WORD, operation: UNLOCK_PI, value: 0 });
    s.waking(free + 2 * US, 0, CONTROL, 0);
    s.at(free + 3 * US, 0, Kind::Inherit { task: LOGGER.id, old: CONTROL.priority, new: LOGGER.priority });
    s.priority(0, LOGGER.priority).switch(free + 6 * US, 0, Runnable, CONTROL);
    s.at(free + 9 * US, 0, Kind::FutexExit { result: 0 });
    let noise = free + 30 * US;
    s.at(noise, 0, Kind::IrqEntry { irq: 30 }).at(noise + 9 * US, 0, Kind::IrqExit { irq: 30 });
    s.schedule(free + 88 * US, 0).switch(free + 90 * US, 0, Sleeping, LOGGER);
    s.at(free + 92 * US, 0, Kind::FutexExit { result: 0 });
    s.switch(free + 140 * US, 0, Sleeping, IDLE);
}

fn names() -> Names {
    let mut names = Names::new();
    // Any user chooses the names of their threads.
    names.thread(LOGGER.id, "<b>log&\"'");
    names.thread(CONTROL.id, "control");
    names.thread(IRQ.id, "irq/24-eth0");
    names.irq(24, "eth0");
    names.vector(236, "local_timer");
    names
}

fn watched(script: &Script) -> (Watch, Collector) {
    let mut watch = Watch::new(Config { segments: true, ..Config::default() }, KEEP);
    watch.sample(SAMPLE);
    let mut collector = Collector::new();
    for event in &script.events {
        collector.event(event);
        watch.feed(event, &mut |job| collector.job(job), &mut |_| {});
    }
    watch.finish(&mut |job| collector.job(job));
    (watch, collector)
}

fn page(script: &Script) -> (String, Watch) {
    let (watch, collector) = watched(script);
    let about = About {
        title: "invented.dat".into(),
        source: "invented.dat".into(),
        system: "Linux 6.12.0-rt PREEMPT_RT, a machine that does not exist".into(),
        clock: "mono".into(),
        absent: vec!["osnoise: the kernel has none of these events".into()],
        ..About::default()
    };
    let names = names();
    let report = Report::new(&about, &watch, &collector, &names);
    let mut page = Vec::new();
    write(&report, &mut page).unwrap();
    (String::from_utf8(page).unwrap(), watch)
}

/// Returns the page's section on the task of that thread.
fn section<'a>(document: &'a str, name: &str) -> &'a str {
    let sections = document.split("<section class=\"task\"").skip(1);
    let mut sections = sections.map(|rest| rest.split("</section>").next().unwrap());
    sections
        .find(|section| section.contains(&format!("<h2>{name}")))
        .unwrap_or_else(|| panic!("no section of {name}"))
}

fn numbers(text: &str, attribute: &str) -> Vec<u64> {
    let before = format!("{attribute}=\"");
    let parts = text.split(&before).skip(1);
    parts.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect()
}

/// Returns whether a job is hidden, from the text after the start of its tag.
fn hidden(job: &str) -> bool {
    job.split('>').next().unwrap().contains("hidden")
}

fn of(watch: &Watch, thread: u32) -> &TaskStats {
    let actor = punctual_trace::jobs::Actor::Thread(thread);
    watch.tasks().iter().find(|task| task.key().actor == actor).expect("the task has jobs")
}

#[test]
fn shows_decomposed_jobs_in_browser_without_errors() {
    let (page, watch) = page(&recording(2_000));
    if let Some(path) = std::env::var_os("PAGE_OUT") {
        std::fs::write(path, &page).unwrap();
    }
    let Some(browser) = Browser::find("page") else { return };
    let opened = browser.open(&page, "");
    assert!(opened.console.is_empty(), "{:#?}", opened.console);

    let (control, stats) = (section(&opened.document, "control/701"), of(&watch, CONTROL.id));
    assert_eq!(stats.jobs(), 2_000);
    for term in Term::ALL {
        let figure = control.split(&format!("<figure class=\"pair\" data-term=\"{}\"", term.letter())).nth(1);
        let figure =
            figure.unwrap_or_else(|| panic!("no chart of {term:?}")).split("</figure>").next().unwrap();
        assert_eq!(numbers(figure, "data-n").iter().sum::<u64>(), 2_000, "{term:?}");
        if term != Term::Overhead {
            assert_eq!(numbers(figure, "data-max"), [stats.summary(term).max], "{term:?}");
        }
    }
    // Each of the worst jobs is there, its phases fill it, and the slider is set to the worst.
    let jobs: Vec<&str> = control.split("<div class=\"job\"").skip(1).collect();
    assert_eq!(jobs.len(), KEEP + stats.sampled().len(), "none of the sample is among the worst");
    assert!((SAMPLE / 2..=SAMPLE).contains(&stats.sampled().len()));
    for (drawn, whole) in jobs.iter().zip(stats.worst().iter().chain(stats.sampled())) {
        // The first drawing is the one for wide screens.
        let drawn = &drawn[..drawn.find("timeline narrow").expect("there are two drawings")];
        assert_eq!(numbers(drawn, "data-job"), [whole.job.number]);
        assert_eq!(Some(numbers(drawn, "data-ns").iter().sum()), whole.job.response.hi());
    }
    let words = "held by <code>&lt;b&gt;log&amp;\"'/702</code>";
    assert!(jobs[..KEEP].iter().all(|job| job.contains(words)), "{}", jobs[0]);
    assert_eq!(jobs.iter().position(|job| !hidden(job)), Some(0));
    assert_eq!(jobs.iter().filter(|job| hidden(job)).count(), jobs.len() - 1);
    let longest = jobs[0].split("<b>").nth(1).unwrap().split("</b>").next().unwrap();
    assert!(control.contains(&format!("<output>{longest}</output>")), "{longest}");

    // A link to another job moves the slider to it.
    let opened = browser.open(&page, "#t1-j4");
    assert!(opened.console.is_empty(), "{:#?}", opened.console);
    let jobs: Vec<&str> =
        section(&opened.document, "control/701").split("<div class=\"job\"").skip(1).collect();
    assert_eq!(jobs.iter().filter(|job| !hidden(job)).count(), 1);
    assert!(jobs[4].starts_with(" id=\"t1-j4\">"), "{}", &jobs[4][..80]);
}

#[test]
fn handles_slider_buttons_keys_and_theme() {
    let (page, watch) = page(&recording(200));
    let last = KEEP + of(&watch, CONTROL.id).sampled().len() - 1;
    let Some(browser) = Browser::find("keys") else { return };
    // The second section is that of the control task. Each step begins at the worst job and ends at
    // this one.
    let steps = [
        ("key('ArrowRight'); key('ArrowRight')", 2),
        ("key('ArrowRight'); key('ArrowLeft'); key('ArrowLeft')", 0),
        ("slide(6)", 5),
        ("slide(6); worse.click()", 4),
        ("slide(6); better.click(); better.click()", 7),
        ("for (let i = 0; i < 40; i++) key('ArrowRight')", last),
    ];
    let mut script = String::from(
        "<script>{
        const figure = document.querySelectorAll('.worst')[1], jobs = [...figure.querySelectorAll('.job')];
        const slider = figure.querySelector('input'), [worse, better] = figure.querySelectorAll('button');
        const key = (key) => figure.dispatchEvent(new KeyboardEvent('keydown', { key }));
        const slide = (to) => { slider.value = to; slider.dispatchEvent(new Event('input')); };
        const shown = [], theme = document.querySelector('.theme select');
        const look = () => shown.push(jobs.flatMap((job, index) => job.hidden ? [] : [index]).join('+'));",
    );
    for (step, _) in steps {
        script += &format!("slide(1); {step}; look();");
    }
    script += "for (const scheme of ['dark', 'light']) {
            theme.value = scheme;
            shown.push(getComputedStyle(document.documentElement).colorScheme);
        }
        document.documentElement.dataset.shown = shown.join(' '); }</script></body>";
    let opened = browser.open(&page.replace("</body>", &script), "");
    assert!(opened.console.is_empty(), "{:#?}", opened.console);
    let expected = steps.map(|(_, shown)| shown.to_string()).join(" ");
    let root = opened.document.split("<html").nth(1).unwrap().split('>').next().unwrap();
    assert_eq!(root, format!(" lang=\"en\" data-shown=\"{expected} dark light\""));
}

/// Runs a script on the page and returns the value of its last expression.
fn run(browser: &Browser, page: &str, script: &str) -> String {
    let script =
        format!("<script>document.documentElement.dataset.found = (() => {{{script}}})();</script></body>");
    let opened = browser.open(&page.replace("</body>", &script), "");
    assert!(opened.console.is_empty(), "{:#?}", opened.console);
    let found =
        opened.document.split(" data-found=\"").nth(1).unwrap_or_else(|| panic!("the script did not end"));
    found.split('"').next().unwrap().to_owned()
}

/// The first timeline of the control task, with helpers to use it.
const TIMELINE: &str = "
    const job = document.querySelectorAll('.worst')[1].querySelector('.job:not([hidden])');
    const [svg] = [...job.querySelectorAll('svg')].filter((svg) => svg.getBoundingClientRect().width > 0);
    const key = (key, more = {}) => svg.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, ...more }));
    const tip = () => document.querySelector('.tip').textContent;
    const bars = () => [...svg.querySelectorAll('.phase')].filter((bar) => bar.style.display !== 'none');
    const widths = () => bars().map((bar) => bar.getBBox().width);
    const buttons = [...job.querySelectorAll('.zoom-bar button')];
    svg.focus();";

#[test]
fn zooms_and_pans_timeline() {
    let (page, _) = page(&recording(200));
    let Some(browser) = Browser::find("zoom") else { return };
    let script = format!(
        "{TIMELINE}
        const [earlier, out, closer, later, whole] = buttons;
        const before = bars().map((bar) => bar.getAttribute('d')).join();
        const [all] = [bars().length];
        closer.click(); closer.click(); closer.click();
        const fewer = bars().length < all, labels = svg.querySelectorAll('.zoom.tick').length;
        const [left, right] = svg.dataset.plot.split(' ').map(Number);
        const inside = bars().every((bar) => {{ const {{ x, width }} = bar.getBBox(); return x >= left - 0.1 && x + width <= right + 1.3; }});
        const middle = bars().map((bar) => bar.dataset.t).join();
        for (let n = 0; n < 40; n++) earlier.click();
        const first = bars()[0].dataset.t.split(' ')[0];
        for (let n = 0; n < 60; n++) later.click();
        const span = svg.dataset.plot.split(' ')[2], last = bars().at(-1).dataset.t.split(' ')[1] === span;
        whole.click();
        const again = bars().map((bar) => bar.getAttribute('d')).join() === before;
        svg.dispatchEvent(new WheelEvent('wheel', {{ deltaY: -400, ctrlKey: true, clientX: svg.getBoundingClientRect().right - 20, bubbles: true }}));
        const wheel = bars().at(-1).dataset.t.split(' ')[1] === span && svg.classList.contains('zoomed');
        whole.click(); key('+'); const keyed = svg.classList.contains('zoomed'); key('0');
        return [fewer, labels > 2, inside, first, last, again, wheel, keyed, svg.classList.contains('zoomed')].join(' ');"
    );
    assert_eq!(run(&browser, &page, &script), "true true true 0 true true true true false");
}

#[test]
fn shows_details_by_keys_and_pointer() {
    let (page, _) = page(&recording(200));
    let Some(browser) = Browser::find("tips") else { return };
    let script = format!(
        "{TIMELINE}
        const told = [];
        for (let n = 0; n < 4; n++) {{ key('ArrowRight'); told.push(tip().split(':')[0]); }}
        const shown = [...job.parentElement.querySelectorAll('.job')].filter((job) => !job.hidden).length;
        key('ArrowDown'); const below = tip();
        key('Escape'); const gone = tip();
        bars()[1].dispatchEvent(new PointerEvent('pointerover', {{ bubbles: true }}));
        const over = tip();
        svg.dispatchEvent(new PointerEvent('pointerleave'));
        return [told.join(), shown, below !== '' && below !== told.at(-1), gone, over.length > 3, tip()].join('|');"
    );
    let found = run(&browser, &page, &script);
    let parts: Vec<&str> = found.split('|').collect();
    assert!(parts[0].starts_with("J,"), "{found}");
    assert_eq!(parts[1..], ["1", "true", "", "true", ""], "{found}");
}

#[test]
fn shows_job_of_chart_point() {
    let (page, watch) = page(&recording(2_000));
    let Some(browser) = Browser::find("points") else { return };
    let retained = KEEP + of(&watch, CONTROL.id).sampled().len();
    let script = "
        const section = document.querySelectorAll('section.task')[1];
        const jobs = [...section.querySelectorAll('.job')];
        const shown = () => jobs.flatMap((job, index) => job.hidden ? [] : [index]).join('+');
        const [chart] = section.querySelectorAll('svg.series'), points = [...chart.querySelectorAll('a')];
        const found = [points.length];
        points[5].dispatchEvent(new MouseEvent('click', { bubbles: true, cancelable: true, clientX: 0, clientY: 0 }));
        const at = (point) => { const { left, top } = point.getBoundingClientRect(); return { clientX: left + 3, clientY: top + 3 }; };
        const click = (point) => chart.dispatchEvent(new MouseEvent('click', { bubbles: true, ...at(point) }));
        const last = points.at(-1);
        click(last); found.push(shown());
        click(points[3]); found.push(shown());
        chart.focus();
        chart.dispatchEvent(new KeyboardEvent('keydown', { key: 'ArrowRight', bubbles: true }));
        return found.join(' ');";
    let found = run(&browser, &page, script);
    assert_eq!(found, format!("{retained} {} 3", retained - 1));
}

/// Text of at least eleven pixels, and nothing outside the edges except in boxes that scroll, on a
/// phone in portrait orientation.
#[test]
fn is_legible_on_narrow_screen() {
    let (page, _) = page(&recording(200));
    let Some(browser) = Browser::find("narrow") else { return };
    let script = "
        const frame = document.createElement('iframe');
        frame.style.cssText = 'width: 420px; height: 900px; border: 0; position: absolute; left: 0; top: 0';
        document.querySelectorAll('script').forEach((script) => script.remove());
        frame.srcdoc = document.documentElement.outerHTML;
        document.body.replaceChildren(frame);
        frame.addEventListener('load', () => {
            const { document: page } = frame.contentWindow;
            const seen = [...page.querySelectorAll('svg text')].filter((text) => text.getBoundingClientRect().width > 0);
            const size = (text) => {
                const { svg = text.ownerSVGElement } = {};
                return parseFloat(frame.contentWindow.getComputedStyle(text).fontSize)
                    * svg.getBoundingClientRect().width / svg.viewBox.baseVal.width;
            };
            const smallest = Math.min(...seen.map(size));
            const beyond = seen.filter((text) => {
                const box = text.closest('figure, .scroll');
                const { left, right } = text.getBoundingClientRect();
                const { left: from, right: to } = text.ownerSVGElement.getBoundingClientRect();
                const clipped = box ? left < from - 1 || right > to + 1 : left < -1 || right > 421;
                return clipped || (box && frame.contentWindow.getComputedStyle(box).overflowX !== 'auto');
            });
            document.documentElement.dataset.found = [
                seen.length > 50, smallest >= 11, beyond.map((text) => text.textContent).join(), page.documentElement.scrollWidth <= 420,
            ].join('|');
        });";
    assert_eq!(run(&browser, &page, script), "true|true||true");
}

#[test]
fn finds_error_in_page() {
    let (page, _) = page(&recording(20));
    let Some(browser) = Browser::find("fault") else { return };
    let seeded =
        page.replace("'use strict';", "'use strict'; document.querySelector('.nowhere').hidden = false;");
    assert_ne!(seeded, page);
    let opened = browser.open(&seeded, "");
    assert!(opened.console.iter().any(|line| line.contains("TypeError")), "{:#?}", opened.console);
}

/// A headless Chromium, which opens pages.
struct Browser {
    program: &'static str,
    place: Scratch,
}

/// A page after its scripts have run.
struct Opened {
    document: String,
    /// Its console output and its errors.
    console: Vec<String>,
}

impl Browser {
    /// Returns `None` if none exists on this machine, and prints a notice.
    fn find(name: &str) -> Option<Self> {
        let Some(program) = browser::find() else {
            skip(Need::Tool("chromium"), "pages in a browser");
            return None;
        };
        let place = Scratch::new(&format!("browser-{name}")).expect("there is room for a directory");
        Some(Self { program, place })
    }

    fn file(&self) -> PathBuf {
        self.place.path().join("page.html")
    }

    /// Opens the page at a fragment such as `#t0-j1`, or at none.
    fn open(&self, page: &str, fragment: &str) -> Opened {
        fs::write(self.file(), page).expect("there is room for the page");
        let address = format!("file://{}{fragment}", self.file().display());
        let output = browser::command(self.program, self.place.path())
            .args(["--enable-logging=stderr", "--dump-dom"])
            .arg(address)
            .output_within(TEST_LIMIT)
            .expect("it has just said its version");
        let printed = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{} failed: {printed}", self.program);
        let console = printed.lines().filter(|line| line.contains(":CONSOLE")).map(str::to_owned).collect();
        Opened { document: String::from_utf8_lossy(&output.stdout).into_owned(), console }
    }
}
