use super::*;
use crate::format::Order;

const SWITCH: &str = include_str!("../../../tests/data/events/sched/sched_switch/format");
const SETPRIO: &str = include_str!("../../../tests/data/events/sched/sched_pi_setprio/format");
const ENTER: &str = include_str!("../../../tests/data/events/raw_syscalls/sys_enter/format");
const PRINT: &str = include_str!("../../../tests/data/events/ftrace/print/format");
const PAGE: &str = include_str!("../../../tests/data/events/header_page");
const EVENT: &str = include_str!("../../../tests/data/events/header_event");

fn parse(text: &str) -> EventFormat {
    EventFormat::parse("x", text.as_bytes()).unwrap()
}

#[test]
fn parses_numbers_arrays_and_located_fields() {
    let switch = parse(SWITCH);
    assert_eq!(switch.name, "sched_switch");
    assert_eq!(switch.fields.len(), 11);
    let state = switch.field("prev_state").unwrap();
    assert_eq!((state.offset, state.size, state.signed, state.shape), (32, 8, true, Shape::Plain));
    assert_eq!(switch.field("prev_comm").unwrap().shape, Shape::Array(16));
    assert!(switch.print.starts_with("\"prev_comm=%s"));
    assert_eq!(parse(SETPRIO).field("comm").unwrap().shape, Shape::Located);
    assert_eq!(parse(ENTER).field("args").unwrap().shape, Shape::Array(6));
    let buf = parse(PRINT).field("buf").unwrap().clone();
    assert_eq!((buf.size, buf.shape), (0, Shape::Array(0)));
}

#[test]
fn parses_page_layout() {
    let layout = PageLayout::parse(PAGE.as_bytes(), Order::Little).unwrap();
    assert_eq!((layout.timestamp, layout.commit, layout.long, layout.data, layout.size), (0, 8, 8, 16, 4096));
    let large = PAGE.replace("size:4080", "size:131056");
    assert_eq!(PageLayout::parse(large.as_bytes(), Order::Little).unwrap().size, 131_072);
    let absurd = PAGE.replace("size:4080", "size:99999999");
    let error = PageLayout::parse(absurd.as_bytes(), Order::Little).unwrap_err();
    assert!(error.to_string().contains("100000015 bytes"), "{error}");
    let old = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
               \tfield: local_t commit;\toffset:8;\tsize:4;\tsigned:1;\n\
               \tfield: char data;\toffset:12;\tsize:4084;\tsigned:1;\n";
    assert_eq!(PageLayout::parse(old.as_bytes(), Order::Big).unwrap().long, 4);
}

#[test]
fn decodes_event_headers() {
    check_header_event(EVENT.as_bytes()).unwrap();
    let error = check_header_event(EVENT.replace("== 29", "== 27").as_bytes()).unwrap_err();
    assert!(error.to_string().contains("padding"), "{error}");
    let error = check_header_event(EVENT.replace("== 28", "== 20").as_bytes()).unwrap_err();
    assert!(error.to_string().contains("data max type_len"), "{error}");
}

#[test]
fn names_offset_of_error() {
    let error = |text: &str| EventFormat::parse("x", text.as_bytes()).unwrap_err();
    assert_eq!(error("name: a\n").problem, FormatProblem::Missing("ID:"));
    assert_eq!(error("ID: 1\n").problem, FormatProblem::Missing("name:"));
    assert_eq!(error("name: a\nID: 70000\n").offset, 8);
    assert_eq!(error("name: a\nID: 1\nfield:int;\toffset:0;\tsize:4;\n").problem, FormatProblem::Field);
    let long = error("name: a\nID: 1\nfield:int a;\toffset:65535;\tsize:4;\n");
    assert!(matches!(long.problem, FormatProblem::TooLong { end: 65_539, .. }));
    let many = format!("name: a\nID: 1\n{}", "field:int a;offset:0;size:4;\n".repeat(300));
    assert!(matches!(error(&many).problem, FormatProblem::TooManyFields(_)));
    let bytes = EventFormat::parse("x", b"name: \xff").unwrap_err();
    assert_eq!((bytes.offset, bytes.problem), (6, FormatProblem::NotText));
}
