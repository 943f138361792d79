//! Tests that errors in a file are reported with their line and a remedy.

use punctual_analysis::schema::{line_of_task, read};
use punctual_analysis::supply::Supply;
use punctual_analysis::system::{Executor, Protocol};

const HEAD: &str = "schema = \"punctual-taskset/1\"\n";
const TASK: &str = "[[task]]\nname = \"a\"\nlevel = 1\nexecution = \"1us\"\n";

/// A file with all features of the format.
const FULL: &str = r#"
schema = "punctual-taskset/1"
app = "gimbal"

[[partition]]
name = "control"
executor = "preemptive"
cpu = 3
release = "3us"
dispatch = "500ns"
lock = "50ns"
preemption = "1us"
supply = { budget = "950ms", period = "1s" }
idle_sections = [{ resource = "state", hold = "4us" }]

[[partition]]
name = "fast"
executor = "polling"
supply = { share = 0.8, delay = "2ms" }

[[partition]]
name = "rest"
executor = "global"
cpus = 4

[[resource]]
name = "state"

[[resource]]
name = "shared"
protocol = "msrp"
group = 0

[[interrupt]]
name = "eth0"
partition = "control"
execution = "5us"
min_interval = "1ms"
burst = 4
jitter = "1us"

[[task]]
name = "sample"
partition = "control"
level = 2
period = "1ms"
offset = "100us"
execution = "200us"
deadline = "800us"
jitter = "10us"
sections = [{ resource = "state", hold = "10us" }, { resource = "shared", hold = "2us", times = 3, inside = "state" }]
spawns = [{ task = "log" }, { task = "act", most = 2 }]

[[task]]
name = "act"
partition = "fast"
level = 1
execution = "20us"
sections = [{ resource = "shared", hold = "2us" }]

[[task]]
name = "log"
partition = "rest"
level = 1
execution = "100us"
min_interval = "1ms"
suspension = { total = "30us", times = 2 }

[[chain]]
name = "camera to motor"
tasks = ["sample", "act"]
link = "spawned"
deadline = "2ms"
"#;

#[test]
fn reads_everything() {
    let system = read("full.toml", FULL).unwrap();
    assert_eq!(system.partitions[0].supply, Supply::Periodic { budget: 950_000_000, period: 1_000_000_000 });
    assert_eq!(system.partitions[1].supply, Supply::BoundedDelay { delay: 2_000_000, share_ppm: 800_000 });
    assert_eq!(system.partitions[2].executor, Executor::Global { cpus: 4 });
    assert_eq!(system.resources[1].protocol, Protocol::Msrp { group: 0 });
    assert_eq!(system.resources[0].ceilings, [2, 0, 0]);
    assert_eq!(system.tasks[0].spawns[1].most, 2);
    assert_eq!((system.tasks[1].deadline, system.tasks[2].deadline), (None, Some(1_000_000)));
    assert_eq!(system.chains[0].tasks, [0, 1]);
    assert_eq!(line_of_task(FULL, 1), FULL.lines().position(|line| line == "name = \"act\""));
}

#[test]
fn reads_the_same_from_json() {
    let value: toml::Value = toml::from_str(FULL).unwrap();
    let json = serde_json::to_string_pretty(&value).unwrap();
    assert_eq!(read("full.json", &json).unwrap(), read("full.toml", FULL).unwrap());
}

/// Reads `text`, which must fail on `line` with these words.
#[track_caller]
fn refused(text: &str, line: usize, what: &str, fix: &str) {
    let error = read("file", text).expect_err(text);
    assert!(error.what.contains(what), "{error}");
    assert!(error.fix.contains(fix), "{error}");
    assert_eq!(error.line, Some(line), "{error}\n{text}");
    assert!(error.to_string().starts_with(&format!("file:{line}: ")), "{error}");
}

#[test]
fn rejects_unknown_versions_and_names() {
    refused("schema = \"punctual-taskset/2\"\ntask = 3", 1, "punctual-taskset/2", "punctual-taskset/1");
    refused("{\n\"schema\":\n \"x\"}", 3, "`x`", "\"schema\": \"punctual-taskset/1\"");
    refused(&format!("{HEAD}{TASK}perod = \"1ms\"\n"), 6, "perod", "docs/book/src/reference/taskset.md");
    refused(
        &format!("{HEAD}{TASK}sections = [\n{{ resource = \"r\", hold = \"1us\" }}]\n"),
        7,
        "`r`",
        "[[resource]]",
    );
    let period = "period = \"1ms\"\n";
    refused(&format!("{HEAD}{TASK}{period}spawns = [{{ task = \"z\" }}]\n"), 7, "`z`", "one of a");
    refused(&format!("{HEAD}{TASK}{period}partition = \"p\"\n"), 7, "`p`", "[[partition]]");
    refused(&format!("{HEAD}{TASK}{period}{TASK}{period}"), 8, "two tasks are named", "rename");
    assert!(read("file", TASK).unwrap_err().what.contains("no schema"));
}

/// Their product is the size of the table of ceilings, and chains of sections are searched.
#[test]
fn rejects_more_entries_than_are_analyzed() {
    let lines = |count: usize, line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    let partitions = |count| lines(count, &|at| format!("[[partition]]\nname = \"p{at}\"\n"));
    let text = |count| format!("{HEAD}{}{TASK}partition = \"p0\"\nperiod = \"1ms\"\n", partitions(count));
    assert!(read("f.toml", &text(1_024)).is_ok());
    refused(&text(1_025), 2, "there are 1025 partitions, and at most 1024 are analyzed", "separately");
    let resources = |count| lines(count, &|at| format!("[[resource]]\nname = \"r{at}\"\n"));
    let text = |count| format!("{HEAD}{}{TASK}period = \"1ms\"\n", resources(count));
    assert!(read("f.toml", &text(4_096)).is_ok());
    refused(&text(4_097), 2, "there are 4097 resources", "separately");
    let sections = |count| lines(count, &|at| format!("{{ resource = \"r{at}\", hold = \"1ns\" }},"));
    let text =
        |count| format!("{HEAD}{}{TASK}period = \"1ms\"\nsections = [{}]\n", resources(65), sections(count));
    assert!(read("f.toml", &text(64)).is_ok());
    refused(&text(65), 137, "there are 65 sections", "separately");
}

/// Names are printed on terminals.
#[test]
fn rejects_names_that_affect_a_terminal() {
    for name in ["a\\u001b[2J", "a\\nb", "\\u202e"] {
        let named = TASK.replace("name = \"a\"", &format!("name = \"{name}\""));
        assert_ne!(named, TASK);
        refused(&format!("{HEAD}{named}period = \"1ms\"\n"), 3, "control character", "visible");
        refused(
            &format!("{HEAD}app = \"{name}\"\n{TASK}period = \"1ms\"\n"),
            2,
            "control character",
            "visible",
        );
    }
    let quoted = read("file", &format!("{HEAD}{TASK}period = \"1\\u001b[2J\"\n")).expect_err("no unit");
    assert!(!quoted.to_string().contains('\u{1b}'), "{quoted}");
}

#[test]
fn rejects_impossible_nesting() {
    let with = |sections: &str| {
        let resources = "[[resource]]\nname = \"r\"\n[[resource]]\nname = \"s\"\nprotocol = \"msrp\"\n\
                         [[resource]]\nname = \"t\"\nprotocol = \"msrp\"\n";
        format!("{HEAD}{resources}{TASK}period = \"1ms\"\nsections = [\n{sections}\n]\n")
    };
    let section = |resource: &str, hold: u32, inside: &str| {
        format!("{{ resource = \"{resource}\", hold = \"{hold}ns\", inside = \"{inside}\" }}")
    };
    let outer = "{ resource = \"r\", hold = \"9ns\" },\n";
    assert!(read("file", &with(&(outer.to_owned() + &section("s", 9, "r")))).is_ok());
    refused(&with(&section("s", 9, "x")), 16, "`x`", "one of r, s, t");
    refused(&with(&section("s", 9, "r")), 16, "no section of `r`", "add one");
    refused(&with(&section("s", 9, "s")), 16, "`s` lies inside itself", "locks before it");
    let circle = section("r", 9, "s") + ",\n" + &section("s", 9, "r");
    refused(&with(&circle), 16, "`r` lies inside itself", "locks before it");
    // Every path through many circles would take centuries.
    let circles = vec![circle; 10].join(",\n");
    refused(&with(&(section("t", 9, "r") + ",\n" + &circles)), 17, "inside itself", "locks before it");
    refused(&with(&(outer.to_owned() + &section("s", 10, "r"))), 17, "longer than `r`", "raise the hold");
    let others = "{ resource = \"s\", hold = \"9ns\" },\n".to_owned() + &section("t", 9, "s");
    refused(&with(&others), 17, "in different groups", "the same `group`");
}

#[test]
fn rejects_invalid_times() {
    let with = |line: &str| format!("{HEAD}{TASK}{line}\n");
    refused(&with("period = 100"), 6, "no unit", "docs");
    refused(&with("period = \"100\""), 6, "no unit", "docs");
    refused(&with("period = -5"), 6, "negative", "docs");
    refused(&with("period = \"-5us\""), 6, "negative", "docs");
    refused(&with("period = \"99999999999s\""), 6, "longer than a year", "docs");
    refused(&with("period = \"0us\""), 6, "is 0", "at least 1ns");
    refused(&with("period = \"1ms\"\ndeadline = \"0us\""), 7, "`deadline` is 0", "at least 1ns");
    let chain = format!("{HEAD}{TASK}period = \"1ms\"\n[[chain]]\nname = \"c\"\ntasks = [\"a\"]\n");
    refused(&(chain + "deadline = \"0us\"\n"), 10, "`deadline` is 0", "at least 1ns");
    refused(&with("period = \"1ms\"\nlevel = 1"), 7, "duplicate", "docs");
    refused(&with("period = \"1ms\"\nmin_interval = \"1ms\""), 7, "both", "keep `period`");
    refused(&with("burst = 3"), 6, "no `min_interval`", "add `min_interval`");
    refused(&with("period = \"1ms\"\noffset = 3.5"), 7, "3.5", "docs");
    let huge = HEAD.to_owned() + &TASK.replace("level = 1", "level = 99999999999");
    refused(&huge, 4, "99999999999", "docs");
}

#[test]
fn rejects_systems_beyond_the_analysis() {
    refused(&format!("{HEAD}{TASK}"), 2, "the release rate of `a`", "`min_interval` (and `burst`)");
    refused(&format!("{HEAD}{TASK}"), 2, "the release rate of `a`", "`spawns`");
    refused(&format!("{HEAD}task = []"), 2, "no task", "add one");
    let other = TASK.replace("\"a\"", "\"b\"");
    let cycle = format!("{HEAD}{TASK}spawns = [{{ task = \"b\" }}]\n{other}spawns = [{{ task = \"a\" }}]\n");
    refused(&cycle, 2, "a → b → a", "`min_interval`");
    refused(&format!("{HEAD}{}period = \"1ms\"\n", TASK.replace('1', "0")), 4, "level", "lowest");
    let hold = format!(
        "{HEAD}[[resource]]\nname = \"r\"\n{TASK}period = \"1ms\"\nsections = [{{ resource = \"r\", hold = \"2us\" }}]\n"
    );
    refused(&hold, 9, "longer than it executes", "raise it");
    let across = format!(
        "{HEAD}[[partition]]\nname = \"p\"\n[[partition]]\nname = \"q\"\n[[resource]]\nname = \"r\"\n\
         {TASK}period = \"1ms\"\npartition = \"p\"\nsections = [{{ resource = \"r\", hold = \"1us\" }}]\n\
         {other}period = \"1ms\"\npartition = \"q\"\nsections = [{{ resource = \"r\", hold = \"1us\" }}]\n"
    );
    refused(&across, 6, "p and q", "msrp");
    let unsaid = across.replace("partition = \"q\"\n", "");
    refused(&unsaid, 15, "several partitions", "p, q");
}

#[test]
fn accepts_or_rejects_any_input_without_panic() {
    // Every third prefix and changed bytes of a file with all features.
    for end in (0..FULL.len()).step_by(3) {
        let _ = read("file", &FULL[..end]);
    }
    let json = serde_json::to_string(&toml::from_str::<toml::Value>(FULL).unwrap()).unwrap();
    for text in [FULL, &json] {
        for at in (0..text.len()).step_by(5) {
            for byte in [b'"', b'0', b'-', b'}', b'\n'] {
                let mut bytes = text.as_bytes().to_vec();
                bytes[at] = byte;
                let _ = String::from_utf8(bytes).map(|text| read("file", &text).is_ok());
            }
        }
    }
}
