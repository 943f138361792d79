//! Local levels: those with local tasks, whose jobs all run on one thread.

use crate::analyse::Analysis;
use crate::model::{App, Handler};

impl Analysis {
    /// Returns whether `level` of `partition` is a local level.
    pub(crate) fn is_local(&self, app: &App, partition: usize, level: u8) -> bool {
        let tasks = self.partitions[partition].levels.get(&level);
        tasks.is_some_and(|tasks| tasks.iter().any(|&task| app.tasks[task].is_local()))
    }

    /// Returns the partition and the level of a task in a local level.
    pub(crate) fn local_level(&self, app: &App, handler: &Handler) -> Option<(usize, u8)> {
        let task = app.task(handler)?;
        let place = (self.partition(app, handler), task.priority);
        self.is_local(app, place.0, place.1).then_some(place)
    }
}

#[cfg(test)]
mod tests {
    use quote::quote;

    use super::*;
    use crate::testing::app_with;

    #[test]
    fn level_is_local_for_exactly_its_tasks() {
        let app = app_with(
            quote!(partitions = [x, y]),
            quote! {
                #[shared] struct Shared {}
                #[task(priority = 2)] fn a(cx: a::Context) {}
                #[task(priority = 2, local_task)] async fn b(cx: b::Context) {}
                #[task(priority = 1)] fn c(cx: c::Context) {}
                #[task(priority = 2, core = y)] fn d(cx: d::Context) {}
            },
        );
        let analysis = Analysis::new(&app);
        let places: Vec<_> = app.tasks.iter().map(|task| analysis.local_level(&app, &task.handler)).collect();
        assert_eq!(places, [Some((0, 2)), Some((0, 2)), None, None]);
        assert!(!analysis.is_local(&app, 1, 2));
    }
}
