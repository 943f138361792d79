//! Commands whose results do not depend on real time, in one program that links once.

mod check;
mod doctor;
mod isolate;
mod messages;
mod new;
mod page;
mod parameters;
mod replay;
mod rta;
mod rta_trace;
mod shell;
mod standard_output;
mod status;
#[path = "../support/mod.rs"]
mod support;
mod trace_convert;
mod trace_merge;
mod trace_report;
#[path = "../../../punctual-trace/tests/it/support/mod.rs"]
mod traces;
