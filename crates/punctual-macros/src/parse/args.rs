//! The arguments of `#[punctual::app(..)]`.

use proc_macro2::TokenStream;
use quote::ToTokens;
use syn::{Expr, ExprLit, ExprPath, Lit, LitStr, Path, UnOp};

use super::constants::Constants;
use super::duration::{Purpose, duration};
use super::keys::{Keys, ungrouped};
use super::table::Value::{Flag, Int, Other};
use super::table::{DURATION, Key};
use super::{partitions, size};
use crate::errors::Errors;
use crate::model::AppArgs;

/// Valid values of `report`.
const REPORT: &str = "\"auto\", \"always\", \"never\" or \"<path of a file, with a `/`>\"";

pub(super) const CPU: Key = Key::new(
    "cpu = N",
    Other("<integer or constant expression>"),
    "an isolated CPU, else the highest allowed one",
    "the CPU of every task; a constant expression. `Config::cpu` and `PUNCTUAL_CPU` override \
     it",
);

pub(super) const STACK: Key = Key::new(
    "stack = S",
    Other("<size>"),
    "see `Config::stack`",
    "the stack of each thread that runs tasks: `8.mib()`, `512.kib()`, or a constant \
     expression of type `usize`, in bytes; `Config::stack` and `PUNCTUAL_STACK` override it",
);

/// Keys of `#[punctual::app]`.
pub(super) const KEYS: &[Key] = &[
    CPU,
    Key::new(
        "executor = \"global\"",
        Other("\"partition\" or \"global\""),
        "`\"partition\"`",
        "every level on any free CPU",
    ),
    Key::new(
        "partitions = [a, b(cpu = N), c(poll)]",
        Other("[<name>, <name>(cpu = <integer or constant expression>, stack = <size>, poll)]"),
        "one, without a name",
        "tasks on several CPUs",
    ),
    Key::new(
        "priority_base = B",
        Int(1, 98),
        "50",
        "level `l` runs at SCHED_FIFO priority `B + l`, which is at most 99",
    ),
    STACK,
    Key::new(
        "wake_latency = D",
        DURATION,
        "no bound",
        "while the app runs, no CPU may enter an idle state that takes longer to leave, see \
         `Config::wake_latency`; that and `PUNCTUAL_WAKE_LATENCY` override it",
    ),
    Key::new(
        "strict",
        Flag,
        "off",
        "refuse to start without all real-time settings; `Config::strict` and \
         `PUNCTUAL_STRICT` override it",
    ),
    Key::new(
        "trace",
        Flag,
        "off",
        "mark every job in the kernel's trace, see `Config::trace`; that and `PUNCTUAL_TRACE` \
         override it",
    ),
    Key::new(
        "profile",
        Flag,
        "off",
        "also measure locks and spawns in a profiled run, see `Config::profile`; in a run \
         without a profile each of them then reads a thread-local variable",
    ),
    Key::new(
        "report = R",
        Other(REPORT),
        "`\"auto\"` in a generated `main`, else `\"never\"`",
        "the destination of the report at the end: standard error if that is a terminal \
         (`\"auto\"`) or always (`\"always\"`), none (`\"never\"`), or a file, whose path \
         contains a `/`; `Config::report` and `PUNCTUAL_REPORT` override it",
    ),
    Key::new(
        "monitor = false",
        Other("<bool>"),
        "`true`",
        "omit the figures of the report, and the clock readings (at most two per job) that \
         they require",
    ),
    Key::new(
        "main = false",
        Other("<bool>"),
        "`true`",
        "generate no `main`; none is generated either if `init` takes arguments",
    ),
    Key::new(
        "crate = path",
        Other("<path>"),
        "`::punctual`",
        "the path of the framework, if the crate has another name or another crate re-exports \
         it: `rt`, `crate::rt`",
    ),
];

pub(crate) fn parse(tokens: TokenStream, errors: &mut Errors) -> AppArgs {
    let keys = Keys::parse("`#[punctual::app]`", tokens, KEYS, errors);
    AppArgs {
        cpu: cpu(&keys, errors),
        global: global(&keys, errors),
        partitions: partitions::parse(&keys, errors),
        priority_base: keys
            .int("priority_base", &Constants::default(), errors)
            .and_then(|base| base.try_into().ok()),
        stack: size::stack(&keys, errors),
        wake_latency: duration(&keys, "wake_latency", Purpose::Other, errors),
        strict: keys.boolean("strict", errors).is_some_and(|strict| strict.value),
        trace: keys.boolean("trace", errors).is_some_and(|trace| trace.value),
        profile: keys.boolean("profile", errors).is_some_and(|profile| profile.value),
        report: report(&keys, errors),
        monitor: keys.boolean("monitor", errors),
        main: keys.boolean("main", errors),
        root: root(&keys, errors),
    }
}

/// Returns the value of `crate`: an absolute path.
fn root(keys: &Keys, errors: &mut Errors) -> Option<Path> {
    let expr = keys.expr("crate", errors)?;
    let Expr::Path(ExprPath { path, qself: None, .. }) = ungrouped(expr) else {
        let given = expr.to_token_stream();
        errors.at(expr, format_args!("write `crate = <path>`, not `crate = {given}`"));
        return None;
    };
    let mut path = path.clone();
    match path.segments.first().map(|first| first.ident.to_string()).as_deref() {
        Some("crate") => {}
        Some("self" | "super") => {
            errors.at(expr, "write the name of a crate, or a path that begins with `crate::`");
            return None;
        }
        _ => path.leading_colon = path.leading_colon.or_else(|| Some(Default::default())),
    }
    Some(path)
}

/// Returns the value of `executor`, if it is the global one.
fn global(keys: &Keys, errors: &mut Errors) -> Option<LitStr> {
    let executor = keys.string("executor", errors)?;
    match executor.value().as_str() {
        "global" => Some(executor),
        "partition" => None,
        other => {
            errors.at(&executor, format_args!("`executor` is \"partition\" or \"global\", not \"{other}\""));
            None
        }
    }
}

fn report(keys: &Keys, errors: &mut Errors) -> Option<LitStr> {
    let report = keys.string("report", errors)?;
    let value = report.value();
    if !matches!(&*value, "auto" | "always" | "never") && !value.contains('/') {
        errors.at(&report, format_args!("`report` is {REPORT}, not \"{value}\""));
    }
    Some(report)
}

/// The compiler evaluates the expression; only values that can never be a CPU are rejected here.
pub(super) fn cpu(keys: &Keys, errors: &mut Errors) -> Option<Expr> {
    let expr = keys.expr("cpu", errors)?;
    let plausible = match ungrouped(expr) {
        Expr::Lit(ExprLit { lit, .. }) => matches!(lit, Lit::Int(_)),
        Expr::Unary(unary) => !matches!(unary.op, UnOp::Neg(_)),
        _ => true,
    };
    if !plausible {
        let given = expr.to_token_stream();
        errors.at(expr, format_args!("`cpu` is the number of a processor, not `{given}`"));
    }
    Some(expr.clone())
}

#[cfg(test)]
mod tests {
    use proc_macro2::TokenStream;
    use quote::quote;

    use super::parse;
    use crate::errors::Errors;
    use crate::model::AppArgs;

    fn args(tokens: TokenStream) -> syn::Result<AppArgs> {
        let mut errors = Errors::default();
        let args = parse(tokens, &mut errors);
        errors.finish().map(|()| args)
    }

    #[track_caller]
    fn rejects(tokens: TokenStream, part: &str) {
        let message = args(tokens).err().expect("the arguments are wrong").to_string();
        assert!(message.contains(part), "{part:?} is not in {message:?}");
    }

    #[test]
    fn defaults() {
        let args = args(quote!()).expect("no arguments are needed");
        assert!(args.cpu.is_none() && args.priority_base.is_none() && args.main.is_none());
        assert!(!args.strict && !args.trace && args.monitor());
    }

    #[test]
    fn all_keys_given() {
        let args = args(quote!(
            cpu = CPUS - 1,
            priority_base = 40,
            stack = 4.mib(),
            wake_latency = 0.micros(),
            strict,
            trace,
            report = "./report.txt",
            monitor = false,
            main = false
        ));
        let args = args.expect("the arguments are right");
        assert!(args.cpu.is_some() && args.strict && args.trace && !args.monitor());
        assert_eq!(args.priority_base, Some(40));
        assert_eq!(args.stack.and_then(|size| size.bytes), Some(4 << 20));
        assert_eq!(args.wake_latency.and_then(|longest| longest.nanos), Some(0));
        assert_eq!(args.report.map(|report| report.value()).as_deref(), Some("./report.txt"));
        assert_eq!(args.main.map(|main| main.value), Some(false));
    }

    #[test]
    fn wrong_arguments() {
        rejects(
            quote!(processor = x),
            "the keys are `cpu`, `executor`, `partitions`, `priority_base`, `stack`, `wake_latency`, \
             `strict`, `trace`, `profile`, `report`, `monitor`, `main`, `crate`",
        );
        rejects(quote!(crate = "rt"), "write `crate = <path>`");
        rejects(quote!(crate = super::rt), "begins with `crate::`");
        rejects(quote!(cpu = "0"), "`cpu` is the number of a processor");
        rejects(quote!(cpu = -1), "`cpu` is the number of a processor");
        rejects(quote!(priority_base = 99), "an integer from 1 to 98");
        rejects(quote!(wake_latency = 10), "a duration needs a unit");
        rejects(quote!(stack = 8), "a size needs a unit, such as `8.kib()`");
        rejects(quote!(stack = 63.kib()), "at least `64.kib()`");
        rejects(quote!(strict = 1), "`strict` is `true` or `false`");
        rejects(quote!(executor = "local"), "`executor` is \"partition\" or \"global\"");
        rejects(quote!(executor = global), "write `executor = \"partition\" or \"global\"`");
        rejects(quote!(report = "report.txt"), "<path of a file, with a `/`>\", not \"report.txt\"");
        rejects(quote!(report = always), "write `report = \"auto\", \"always\"");
        rejects(quote!(monitor), "`monitor` has no value; write `monitor = <bool>`");
    }
}
