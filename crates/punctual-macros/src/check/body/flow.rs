//! Control flow that a job cannot have: waiting, sleeping, and returning an error.

use syn::{Expr, ExprAwait, ExprCall, ExprTry, Ident, ReturnType, Type};

use super::Body;
use crate::errors::suppresses_warnings;
use crate::model::{Role, TaskKind};

impl Body<'_> {
    /// Reports an `.await` where none is allowed.
    pub(super) fn waits(&mut self, expr: &ExprAwait) {
        let name = &self.handler.ident;
        let message = match (self.locked.last(), self.app.task(self.handler).map(|task| &task.kind)) {
            (Some(resource), _) => format!(
                "a critical section cannot wait; copy the needed values out of \
                 `{resource}.lock(..)`, and `.await` after it"
            ),
            (None, _) if self.handler.sig().asyncness.is_some() => {
                "a closure that is not `async` cannot wait; write `async ||`, or `.await` outside it"
                    .to_owned()
            }
            (None, Some(TaskKind::Message)) => {
                format!("`{name}` cannot wait; write `async fn {name}`, or remove the `.await`")
            }
            (None, Some(TaskKind::Periodic { .. })) => format!(
                "`{name}` is released by the clock and cannot wait; remove the `.await`, or remove `period`, write \
                 `async fn {name}`, and await the ticks of `punctual::every(..)`"
            ),
            (None, Some(_)) => format!(
                "`{name}` is released by its event source and cannot wait; remove the `.await`, or spawn an async task"
            ),
            (None, None) => {
                format!("`{name}` is called by the framework and cannot wait; spawn an async task that does")
            }
        };
        self.errors.at(expr.await_token, message);
    }

    /// Reports a `?`, which would return from the handler.
    pub(super) fn passes_error_on(&mut self, expr: &ExprTry) {
        // Another return type is reported there.
        let returns =
            matches!(&self.handler.sig().output, ReturnType::Type(_, ty) if !matches!(**ty, Type::Never(_)));
        if returns && self.handler.role != Role::Init || !self.locked.is_empty() {
            return;
        }
        let name = &self.handler.ident;
        self.errors.at(
            expr.question_token,
            format_args!(
                "`?` returns an error from `{name}`, which has no caller that handles one; handle it here, or write \
                 `.expect(..)`, which stops the app"
            ),
        );
    }

    /// Warns of a job that sleeps.
    pub(super) fn sleeps(&mut self, call: &ExprCall) {
        let Expr::Path(path) = &*call.func else { return };
        let names: Vec<&Ident> = path.path.segments.iter().map(|segment| &segment.ident).collect();
        let [.., module, function] = names[..] else { return };
        let is_sleep = module == "thread" && function == "sleep";
        let is_job = self.runs_in_job && self.handler.role == Role::Task;
        let attrs = [self.handler.item.attrs(), &self.app.module.attrs];
        if is_sleep && is_job && !attrs.into_iter().any(suppresses_warnings) {
            let name = &self.handler.ident;
            let remedy = match self.handler.sig().asyncness {
                Some(_) => "write `punctual::delay(..).await`".to_owned(),
                None => format!("write `async fn {name}`, without `period`, and `punctual::delay(..).await`"),
            };
            self.warnings.at(
                function,
                format_args!(
                    "a job that sleeps keeps its level occupied and may miss its deadline; to wait, {remedy}"
                ),
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::super::tests::in_body;
    use crate::testing::{assert_one, errors, warnings};

    #[test]
    fn waits_outside_async() {
        assert_one(&in_body(quote!(delay().await;)), &["write `async fn t`"]);
        assert_eq!(in_body(quote!(let f = async { delay().await };)), [""; 0]);
        let errors = errors(quote! {
            #[shared] struct Shared { a: u8 }
            #[task(shared = [a])] async fn t(mut cx: t::Context) { cx.shared.a.lock(|_| delay().await); }
            #[task(period = 1.secs())] fn u(_: u::Context) { delay().await }
            #[idle] fn idle(_: idle::Context) { delay().await }
        });
        for (error, part) in
            errors.iter().zip(["spawn an async task", "`.await` after it", "`punctual::every(..)`"])
        {
            assert!(error.contains(part.trim_matches('`')), "{part} is not in {error}");
        }
        assert_eq!(errors.len(), 3);
        let section = quote!(cx.shared.count.lock(async |count| delay().await););
        assert_one(&in_body(section), &["remove `async`, and `.await` after `count.lock(..)`"]);
    }

    #[test]
    fn question_mark_without_a_caller() {
        assert_one(&in_body(quote!(u::spawn()?;)), &["`?` returns an error from `t`", "`.expect(..)`"]);
        let closures = quote! {
            let f = || -> Option<u8> { Some(g()? + 1) };
            let g = async { h()?; Ok(()) };
            cx.shared.count.lock(|count| Some(f()? + *count));
            attempt!(g()?);
        };
        assert_eq!(in_body(closures), [""; 0]);
    }

    #[test]
    fn warns_of_jobs_that_sleep() {
        let items = quote! {
            #[shared] struct Shared { a: u8 }
            #[task(shared = [a])]
            fn t(mut cx: t::Context) {
                std::thread::sleep(LENGTH);
                cx.shared.a.lock(|_| thread::sleep(LENGTH));
                background::spawn(|| std::thread::sleep(LENGTH));
            }
            #[allow(deprecated)] #[task] fn u(_: u::Context) { thread::sleep(LENGTH) }
            #[idle] fn idle(_: idle::Context) { thread::sleep(LENGTH); }
            #[task] async fn v(_: v::Context) { thread::sleep(LENGTH) }
        };
        let warnings = warnings(items);
        assert_eq!(warnings.len(), 3, "{warnings:#?}");
        assert!(
            warnings[0].starts_with("sleep: a job that sleeps keeps its level occupied"),
            "{warnings:#?}"
        );
        assert!(warnings[1].contains("write `async fn t`, without `period`"), "{warnings:#?}");
        assert!(warnings[2].ends_with("to wait, write `punctual::delay(..).await`"), "{warnings:#?}");
    }
}
