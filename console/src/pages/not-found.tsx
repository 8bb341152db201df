import { useT } from "../i18n";
import { Empty, LinkButton, Page, Panel } from "../ui/basics";

export function NotFound({ what }: { what?: string }) {
  const t = useT();
  return (
    <Page title={t("Not found")}>
      <Panel>
        <Empty
          title={what ? t("{what} does not exist", { what }) : t("There is no such page")}
          action={<LinkButton href="/">{t("Overview")}</LinkButton>}
        >
          {t("It was deleted, or the address is wrong.")}
        </Empty>
      </Panel>
    </Page>
  );
}
