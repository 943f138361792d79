#[punctual::app]
mod app {
    use punctual::prelude::*;

    #[shared]
    struct Shared {
        names: Vec<&'static str>,
        limit: usize,
    }

    #[local]
    struct Local {
        list: Vec<u32>,
    }

    #[init(local = [buffer: [u8; 4] = [0; 4]])]
    fn init(cx: init::Context<'static>) -> (Shared, Local) {
        let for_ever: &'static mut [u8; 4] = cx.local.buffer;
        for_ever[0] = 1;
        tick::spawn("tick").unwrap();
        (Shared { names: vec![], limit: 4 }, Local { list: vec![1, 2] })
    }

    #[idle(local = [buffer: [u8; 4] = [0; 4]])]
    fn idle(cx: idle::Context<'_>) {
        let for_ever: &'static mut [u8; 4] = cx.local.buffer;
        for_ever[0] = 1;
    }

    fn first(list: &mut [u32]) -> &mut u32 {
        &mut list[0]
    }

    fn own<'a>(cx: tick::Context<'a>) -> (tick::SharedResources<'a>, &'a mut Vec<u32>) {
        (cx.shared, cx.local.list)
    }

    fn limit<'a>(shared: &tick::SharedResources<'a>) -> &'a usize {
        shared.limit
    }

    #[task(shared = [names, &limit], local = [list])]
    fn tick(cx: tick::Context<'_>, name: &'static str) {
        let (mut shared, list) = own(cx);
        *first(list) += 1;
        shared.names.lock(|names| names.push(name));
        assert_eq!((list[0], *limit(&shared)), (2, 4));
        punctual::shutdown();
    }

    #[task(priority = 2, shared = [names, &limit])]
    fn tock(tock::Context { shared: tock::SharedResources { mut names, limit, .. }, .. }: tock::Context<'_>) {
        names.lock(|names| names.truncate(*limit));
    }
}

#[test]
fn runs() {
    assert_eq!(main(), std::process::ExitCode::SUCCESS);
}
