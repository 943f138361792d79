//! `cargo xtask fuzz`: what nobody would think of, given to the readers of traces and done by whole apps.

mod apps;
mod traces;

use crate::Result;

pub(crate) fn run(arguments: &[String]) -> Result {
    match arguments.split_first() {
        Some((what, rest)) if what == "apps" => apps::run(rest),
        Some((what, rest)) if what == "traces" => traces::run(rest),
        None => {
            traces::run(&[])?;
            apps::run(&[])
        }
        _ => Err("usage: cargo xtask fuzz [apps|traces ..]".into()),
    }
}
