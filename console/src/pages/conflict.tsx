// Shows the second of two users who edit one object the change of the first.
import type { Editable } from "../api/edit";
import { editableText } from "../api/edit";
import { useT } from "../i18n";
import { Banner, Button } from "../ui/basics";
import { Diff } from "../ui/diff";

interface Props {
  loaded: Editable; // As the user opened it.
  current: Editable; // As it is now.
  takeTheirs: () => void;
  keepMine: () => void;
}

export function ConflictPanel({ loaded, current, takeTheirs, keepMine }: Props) {
  const t = useT();
  return (
    <>
      <Banner tone="warn">
        {t("Another user has changed this object since you opened it. Nothing of yours was saved.")}
      </Banner>
      <h3>{t("Their change")}</h3>
      <Diff label={t("Their change")} before={editableText(loaded)} after={editableText(current)} />
      <div className="form-foot">
        <Button onClick={takeTheirs}>{t("Discard mine and load theirs")}</Button>
        <Button kind="danger" onClick={keepMine}>
          {t("Apply mine to the current version")}
        </Button>
      </div>
    </>
  );
}
