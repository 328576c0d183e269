//! Any text as a config.json is refused or gives a valid model, whose text gives the same model again. Any text as a
//! custom model or GPU is refused or is read back as written.

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
        // Without changes it is the published GPU.
        assert_eq!(Catalog::embedded().gpu_or_own(&gpu.id).as_deref(), Ok(&gpu));
    }
});
