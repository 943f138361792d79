//! Uses of items that require a missing feature of `punctual`; `punctual` enables the feature of
//! the same name here.

use crate::errors::Errors;
use crate::model::{App, TaskKind};

/// `has_async`: true if there are async tasks.
pub(super) fn check(app: &App, has_async: bool, errors: &mut Errors) {
    if has_async {
        return;
    }
    for task in app.tasks.iter().filter(|task| matches!(task.kind, TaskKind::Async)) {
        let name = &task.handler.ident;
        errors.at(
            name,
            format_args!(
                "`{name}` is an `async fn`, and `punctual` is built without async tasks: turn on its feature `async` in \
                 Cargo.toml, `punctual = {{ .., features = [\"async\"] }}`"
            ),
        );
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use crate::errors::Errors;
    use crate::testing::app;

    #[test]
    fn async_task_names_required_feature() {
        let app = app(quote! {
            #[shared] struct Shared {}
            #[task(priority = 1)] async fn waits(cx: waits::Context) {}
            #[task(priority = 1)] fn runs(cx: runs::Context) {}
        });
        let said = |has_async| {
            let mut errors = Errors::default();
            super::check(&app, has_async, &mut errors);
            errors.finish().err().map(|error| error.to_string())
        };
        assert_eq!(said(true), None);
        let said = said(false).expect("there is an async task");
        assert!(said.starts_with("`waits` is an `async fn`") && said.contains("feature `async`"), "{said}");
    }
}
