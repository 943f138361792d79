//! An app of 20 tasks that spawn each other; see `chain.rs`.

#[macro_use]
#[path = "../chain.rs"]
mod chain;

#[rustfmt::skip]
chain! {
    t00: t01, t01: t02, t02: t03, t03: t04, t04: t05, t05: t06, t06: t07, t07: t08, t08: t09,
    t09: t10, t10: t11, t11: t12, t12: t13, t13: t14, t14: t15, t15: t16, t16: t17, t17: t18,
    t18: t19, t19: last,
}
