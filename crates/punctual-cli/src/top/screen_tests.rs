//! Tests of the live view, drawn into memory.

use std::time::Instant;

use clap::Parser;
use punctual_core::metrics::{Figure, Term};

use super::*;
use crate::args::{Command, Punctual};
use crate::top::canvas::Canvas;
use crate::top::figures::Since;
use crate::top::figures::tests::{about, snapshot};
use crate::top::view;

fn screen() -> Screen {
    let Ok(Punctual { command: Command::Top(arguments) }) = Punctual::try_parse_from(["punctual", "top"])
    else {
        panic!("it is a command")
    };
    let mut screen = Screen::new(&arguments);
    let snapshot = snapshot(Instant::now(), &[&[812_000; 3], &[40_000, 41_000, 90_000], &[5_000]]);
    screen.all = rows(&about(&["log", "control", "alarm"]), &snapshot, &Since::default());
    screen.all[1].numbers[Figure::Misses as usize] = 17;
    screen
}

fn drawn(screen: &Screen, width: usize, height: usize) -> Vec<String> {
    let mut canvas = Canvas::new(width, height);
    view::draw(screen, &mut canvas);
    canvas.lines()
}

fn press(screen: &mut Screen, keys: &str) {
    keys.chars().for_each(|key| {
        screen.key(match key {
            '\n' => Key::Enter,
            '\u{1b}' => Key::Esc,
            '↓' => Key::Down,
            key => Key::Char(key),
        });
    });
}

#[test]
fn fits_80_columns() {
    let lines = drawn(&screen(), 80, 24);
    assert!(lines[1].starts_with("TASK by level"), "{lines:#?}");
    assert!(lines[1].contains(" OVERR"), "{lines:#?}");
    assert!(lines[2].starts_with("alarm") && lines[3].starts_with("control"), "{lines:#?}");
    for figure in ["41.2 µs", "90.0 µs", "17"] {
        assert!(lines[3].contains(figure), "{figure}: {lines:#?}");
    }
    assert!(lines[23].starts_with("q quit"), "{lines:#?}");
}

/// At every width each shown number is whole, and columns disappear as a whole.
#[test]
fn drops_whole_columns_and_shortens_names() {
    let mut screen = screen();
    screen.all[1].name = "control_of_the_third_axis".into();
    // Numbers and units, without names and partitions.
    let words = |lines: &[String]| -> Vec<Vec<String>> {
        let words = |line: &String| line.split_whitespace().skip(1).map(str::to_owned).collect();
        lines[2..5].iter().map(words).collect()
    };
    let whole = words(&drawn(&screen, 200, 24));
    for width in 20..200 {
        let lines = drawn(&screen, width, 24);
        let heads = &lines[1];
        assert!(width < 34 || heads.contains("R max") && heads.contains("MISS"), "{width}: {heads}");
        for (shown, whole) in words(&lines).iter().zip(&whole) {
            assert!(shown.iter().all(|word| whole.contains(word)), "{width}: {shown:?} of {whole:?}");
        }
    }
    let narrow = drawn(&screen, 40, 24);
    assert!(narrow.iter().any(|line| line == "max 5.00 µs  p99.9 5.00 µs  mean 5.00 µs"), "{narrow:#?}");
    assert!(drawn(&screen, 60, 24)[3].starts_with("control_of_th…"), "{:#?}", drawn(&screen, 60, 24));
    let wide = drawn(&screen, 200, 50);
    assert!(wide[1].ends_with("PARTITION") && wide[3].starts_with("control_of_the_third_axis "), "{wide:#?}");
}

#[test]
fn histogram_has_ticks_and_a_deadline_mark() {
    let mut screen = screen();
    screen.all[2].deadline = Some(4_000_000);
    screen.all[2].terms[Term::Response as usize].buckets = vec![(1_000, 1_000_000), (64_000, 1)];
    let lines = drawn(&screen, 80, 24);
    let axis = &lines[22];
    assert!(axis.starts_with("1.00 µs"), "{lines:#?}");
    for label in ["╵10 µs", "╵100 µs", "deadline 4.00 ms┊"] {
        assert!(axis.contains(label), "{label}: {lines:#?}");
    }
    assert!(lines[21].ends_with('┊') && lines[15].ends_with('┊'), "{lines:#?}");
    press(&mut screen, "h");
    assert!(!drawn(&screen, 80, 24)[22].contains("deadline"), "jitter has none");
}

#[test]
fn key_help_fits_80_columns_below_five_tasks() {
    let mut screen = screen();
    press(&mut screen, "?");
    // As many lines as five tasks leave.
    let lines = drawn(&screen, 80, 24 - 2);
    let line = "/              filter by name, Esc ends it  m    messages of topics, in and out";
    assert!(lines.iter().any(|found| found == line), "{lines:#?}");
    assert!(lines.iter().any(|found| found == "last update."), "{lines:#?}");
}

#[test]
fn any_size_is_drawn() {
    let mut screen = screen();
    for panel in ["", "w", "?", "l", "m"] {
        press(&mut screen, panel);
        for (width, height) in [(1, 1), (3, 40), (200, 2), (20, 5), (300, 100)] {
            drawn(&screen, width, height);
        }
    }
}

#[test]
fn keys_select_task_and_quantity() {
    let mut screen = screen();
    let panel = |screen: &Screen| drawn(screen, 80, 24).into_iter().find(|line| line.contains('─')).unwrap();
    assert!(panel(&screen).contains("alarm: response time R"));
    press(&mut screen, "↓h");
    assert!(panel(&screen).contains("control: release jitter J"));
    press(&mut screen, "↓↓↓↓");
    assert!(panel(&screen).contains("log:"), "the last one");
    // The selection stays with the task, in any order.
    press(&mut screen, "s");
    assert!(drawn(&screen, 80, 24)[1].starts_with("TASK by task"));
    assert!(panel(&screen).contains("log:"));
}

#[test]
fn filter_letters_are_not_keys() {
    let mut screen = screen();
    press(&mut screen, "/on");
    assert!(!screen.is_over);
    let lines = drawn(&screen, 80, 24);
    assert!(lines[2].starts_with("control") && !lines[3].contains("alarm"), "{lines:#?}");
    assert_eq!(lines[23], "filter: on▏");
    press(&mut screen, "q\n");
    assert!(drawn(&screen, 80, 24)[2..4].iter().all(String::is_empty), "nothing is called so");
    press(&mut screen, "/\u{1b}");
    assert_eq!(screen.rows().0.len(), 3);
    press(&mut screen, "q");
    assert!(screen.is_over);
}

#[test]
fn one_late_job_among_many_has_a_bar() {
    let mut screen = screen();
    screen.all[2].terms[Term::Response as usize].buckets = vec![(1_000, 1_000_000), (64_000, 1)];
    let lines = drawn(&screen, 80, 24);
    let bars = &lines[22 - 1];
    assert!(bars.starts_with('█') && bars.trim_end().chars().count() == 80, "{lines:#?}");
    assert!(lines[22].starts_with("1.00 µs") && lines[22].ends_with("64.0 µs"), "{lines:#?}");
}

#[test]
fn explains_empty_screen() {
    let mut screen = screen();
    screen.message = Some("app (process 7): it has ended".into());
    assert_eq!(drawn(&screen, 80, 24)[23], "app (process 7): it has ended");
}

#[test]
fn messages_are_counted_in_their_panel() {
    let mut screen = screen();
    screen.snapshot = Some(snapshot(Instant::now(), &[&[], &[], &[]]));
    press(&mut screen, "m");
    let lines = drawn(&screen, 80, 24);
    assert!(lines.iter().any(|line| line == "/a  7 messages, 2 refused"), "{lines:#?}");
    press(&mut screen, "m");
    assert!(!drawn(&screen, 80, 24).iter().any(|line| line.starts_with("/a  ")));
}

#[test]
fn each_level_has_a_line() {
    let mut screen = screen();
    let about = about(&["log", "control", "alarm"]);
    let start = Instant::now();
    for second in 0..100 {
        let jobs = vec![40_000_000; second as usize];
        let snapshot = snapshot(start + std::time::Duration::from_secs(second), &[&[], &jobs, &[]]);
        screen.levels.add(411, &about, &snapshot);
    }
    press(&mut screen, "l");
    let lines = drawn(&screen, 80, 24);
    let line = |name: &str| lines.iter().find(|line| line.starts_with(name)).unwrap();
    assert!(line("level 2").contains(" 4.0 %"), "{lines:#?}");
    assert!(line("level 1").contains(" 0.0 %"), "{lines:#?}");
    assert!(lines.iter().any(|line| line.ends_with("████")), "{lines:#?}");
}
