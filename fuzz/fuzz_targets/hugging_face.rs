//! Any text: a config.json that is read is a model that can be, whose own text is read back as the same; or it is
//! refused. Any text is an own model or GPU that is read back as written, or is refused.

#![no_main]

use libfuzzer_sys::fuzz_target;
use trainplan_shared::catalog::{Catalog, Gpu, Model};
use trainplan_shared::hugging_face::read;

fuzz_target!(|text: &str| {
    if let Ok(imported) = read(text) {
        let model = imported.model;
        assert_eq!(model.architecture.check(), Ok(()));
        let own = Model::own(&model.id).expect("its own text is a model");
        assert_eq!((own.architecture, own.title, own.id), (model.architecture, model.title, model.id));
    }
    if let Ok(model) = Model::own(text) {
        assert_eq!(Model::own(&model.id).as_ref(), Ok(&model));
    }
    if let Ok(gpu) = Gpu::own(text, Catalog::embedded()) {
        // Where nothing differs it is the published one.
        assert_eq!(Catalog::embedded().gpu_or_own(&gpu.id).as_deref(), Ok(&gpu));
    }
});
